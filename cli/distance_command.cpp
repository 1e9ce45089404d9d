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

The two inputs may be of different kinds. auto: `sigma` of an .npz, or a square symmetric array, is a
covariance; anything else is features, one sample per row; a factor has to be called one.)";

struct Arguments {
  Request a{"A", "--as"}, b{"B", "--as"};
  std::string as = "auto", key;
  bool means = false, squared = false, trust = false, json = false, quiet = false;
};

template <Storage Scalar>
Distance distance_between(const Input<Scalar>& a, const Input<Scalar>& b, bool means) {
  const bool same_kind = a.kind == b.kind;
  if (same_kind && a.kind == Kind::features) {
    Distance distance = guard_overflow([&] { return features_distance<Scalar>(a.values.view(), b.values.view()); });
    if (!means) distance.mean_part = 0;
    return distance;
  }
  Distance distance;
  if (means) distance.mean_part = mean_distance_squared(mean_of(a), mean_of(b));  // first: it may refuse
  distance.covariance_part = guard_overflow([&] {
    return same_kind && a.kind == Kind::covariance ? dense_distance_squared<Scalar>(a.values.view(), b.values.view())
                                                   : factor_distance_squared(factor_of(a), factor_of(b));
  });
  return distance;
}

template <Storage Scalar>
int run_in(const Arguments& given, io::Array array_a, io::Array array_b) {
  const Checks checks{.trust = given.trust, .quiet = given.quiet};
  const auto a = load<Scalar>(given.a, std::move(array_a), checks);
  const auto b = load<Scalar>(given.b, std::move(array_b), checks);
  if (!given.quiet) {
    print_note(a.note());
    print_note(b.note());
  }
  check_same_dim(a, b);
  Progress progress(!given.quiet && std::max(a.dim(), b.dim()) >= long_work);
  progress.show("computing the distance");
  const Distance distance = distance_between(a, b, given.means);
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
  add_trust(*app, given->trust);
  add_threads(*app);
  app->add_flag("--json", given->json, "print one JSON object");
  app->add_flag("--quiet", given->quiet, "print the result alone");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
