// SPDX-License-Identifier: Apache-2.0
//
// itspace distance: the exact W2 distance of two inputs.
#include "arguments.hpp"
#include "commands.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <itspace/distance.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace distance a.npy b.npy
      W2 of two covariances, or of the Gaussians fitted to two feature sets (centred: without their means)
  itspace distance real.npz generated.npz --means --squared
      the Frechet distance of two FID statistics (keys mu and sigma): FID = w2_squared
  itspace distance features_a.npy features_b.npy --means --squared --json
      the same from features; w2, w2_squared, covariance_part and mean_part as JSON
  itspace distance Y.npy target.npy --as factor,covariance
      from a factor of `itspace align` to its target
  itspace distance a.npy b.npy --accuracy 0
      by the sum of squares, the most accurate way, which takes several times as long

The two inputs may be of different kinds. auto: `sigma` of an .npz, or a square symmetric array, is a
covariance; anything else is features, one sample per row; a factor has to be called one.)";

struct Arguments {
  Request a{"A", "--as"}, b{"B", "--as"};
  std::string as = "auto", key;
  double accuracy = default_accuracy.relative;
  bool means = false, squared = false, trust = false, json = false, quiet = false;

  Checks checks() const { return {.trust = trust, .quiet = quiet}; }
};

template <Storage Scalar>
bool are(Kind kind, const Input<Scalar>& a, const Input<Scalar>& b) {
  return a.kind == kind && b.kind == kind;
}

template <Storage Scalar>
double by_factors(const Input<Scalar>& a, const Input<Scalar>& b) {
  return guard_overflow([&] { return factor_distance_squared(factor_of(a), factor_of(b)); });
}

// The distance factors both covariances, or as good as: what it saw of them is not checked again.
template <Storage Scalar>
double between_covariances(const Arguments& given, const Input<Scalar>& a, const Input<Scalar>& b) {
  DenseDistance found;
  bool refused = false;
  try {
    found = dense_distance<Scalar>(a.values.view(), b.values.view(), {given.accuracy, 0});
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  if (!given.trust && !found.first_is_definite) check_entries(a, given.checks());
  if (!given.trust && !found.second_is_definite) check_entries(b, given.checks());
  // Covariances that are none, but trusted, or numbers out of range, which the factors name.
  return refused ? by_factors(a, b) : found.squared;
}

template <Storage Scalar>
Distance distance_between(const Arguments& given, const Input<Scalar>& a, const Input<Scalar>& b) {
  if (are(Kind::features, a, b)) {
    Distance distance = guard_overflow([&] {
      return features_distance<Scalar>(a.values.view(), b.values.view(), {given.accuracy, 0});
    });
    if (!given.means) distance.mean_part = 0;
    return distance;
  }
  Distance distance;
  if (given.means) distance.mean_part = mean_distance_squared(mean_of(a), mean_of(b));  // first: it may refuse
  distance.covariance_part = are(Kind::covariance, a, b) ? between_covariances(given, a, b) : by_factors(a, b);
  return distance;
}

template <Storage Scalar>
int run_in(const Arguments& given, io::Array array_a, io::Array array_b) {
  const auto a = load<Scalar>(given.a, std::move(array_a), Checks{.trust = true});
  const auto b = load<Scalar>(given.b, std::move(array_b), Checks{.trust = true});
  for (const auto* input : {&a, &b}) {
    if (given.trust || input->kind != Kind::covariance) continue;
    // Of two covariances the spectrum is left to their distance.
    if (are(Kind::covariance, a, b))
      check_symmetry(*input);
    else
      check_entries(*input, given.checks());
  }
  if (!given.quiet) {
    print_note(a.note());
    print_note(b.note());
  }
  check_same_dim(a, b);
  Progress progress(!given.quiet && std::max(a.dim(), b.dim()) >= long_work);
  progress.show("computing the distance");
  const Distance distance = distance_between(given, a, b);
  progress.clear();
  const bool finite = check_finite_result({{"w2_squared", distance.squared()}});
  const int code = finite ? exit_code::success : exit_code::outcome;
  if (given.json) {
    print_json({{"w2", distance.w2()},
                {"w2_squared", distance.squared()},
                {"covariance_part", distance.covariance_part},
                {"mean_part", distance.mean_part}});
    return code;
  }
  print_line(given.squared ? fmt::format("w2_squared       {}", precise(distance.squared()))
                           : fmt::format("w2               {}", precise(distance.w2())));
  if (given.means) {
    print_line(fmt::format("covariance_part  {}", precise(distance.covariance_part)));
    print_line(fmt::format("mean_part        {}", precise(distance.mean_part)));
  }
  return code;
}

int run(Arguments& given) {
  check_not_negative("--accuracy", given.accuracy);
  const auto [as_a, as_b] = one_or_two("--as", given.as);
  given.a.as = kind_named("--as", as_a);
  given.b.as = kind_named("--as", as_b);
  std::tie(given.a.key, given.b.key) = one_or_two("--key", given.key);
  auto array_a = open(given.a), array_b = open(given.b);
  return with_data_type(Precision::automatic, {&array_a, &array_b},
                        [&]<class Scalar>() { return run_in<Scalar>(given, std::move(array_a), std::move(array_b)); });
}

}  // namespace

Command add_distance(CLI::App& program) {
  CLI::App* app = program.add_subcommand("distance", "the exact W2 distance of two covariances or feature sets");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_path(*app, "A", given->a.path, "an .npy or .npz file")->required();
  add_path(*app, "B", given->b.path, "an .npy or .npz file")->required();
  app->add_option("--as", given->as,
                  "take them for: auto, covariance, features (n x d), factor (d x m);\n"
                  "one word for both, or two with a comma between them")
      ->type_name("KIND[,KIND]")
      ->default_str("auto");
  app->add_option("--key", given->key, "their names in an .npz (one, or two with a comma)")->type_name("NAME[,NAME]");
  app->add_flag("--means", given->means,
                "add the squared distance of the means: of the features, or mu of an .npz.\n"
                "For FID statistics this makes w2_squared the FID");
  app->add_flag("--squared", given->squared, "print W2^2 instead of W2");
  add_real(*app, "--accuracy", given->accuracy,
           "how good W2^2 must be, as a share of itself: the cheapest way whose bound\n"
           "on its rounding is within that. 0: the sum of squares. For covariances and features")
      ->default_str(fmt::format("{:g}", given->accuracy));
  add_trust(*app, given->trust);
  add_threads(*app);
  app->add_flag("--json", given->json, "print one JSON object");
  app->add_flag("--quiet", given->quiet, "print the result alone");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
