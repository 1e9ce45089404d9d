// SPDX-License-Identifier: Apache-2.0
//
// cuda_check [--quick | --features | --steps | --batches]: does the device do what the host does, and how fast? One
// table of agreements, one of times (with --features nothing but its rows of features), one of single steps of both
// solvers (with --steps nothing else), one of batches (with --batches nothing else). Needs a driver and nothing else;
// ends with 0 if all is well, 1 if something is not, 77 if there is no device.
#include <itspace/align.hpp>
#include <itspace/batch.hpp>
#include <itspace/cuda/batch.hpp>
#include <itspace/cuda/targets.hpp>
#include <itspace/random.hpp>
#include <itspace/targets.hpp>
#include <itspace/threads.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace itspace;

int failures = 0;

void report(const std::string& what, double ratio, double limit) {
  const bool fine = ratio <= limit;
  failures += fine ? 0 : 1;
  std::printf("  %-58s %10.3g of %-6.3g %s\n", what.c_str(), ratio, limit, fine ? "ok" : "WRONG");
  std::fflush(stdout);
}

template <Storage S>
const char* type_name() {
  return sizeof(S) == 4 ? "float32" : "float64";
}

template <Storage S>
Block<S> gaussian(Index rows, Index cols, std::uint64_t seed) {
  Block<S> block(rows, cols);
  Random(seed).fill_normal<S>(block);
  return block;
}

// Samples with variances 1/(j + 1), around a mean of `mean`.
template <Storage S>
Block<S> features(Index samples, Index dim, double mean) {
  Block<S> z = gaussian<S>(samples, dim, 11);
  for (Index j = 0; j < dim; ++j)
    for (Index i = 0; i < samples; ++i) z(i, j) = static_cast<S>(z(i, j) / std::sqrt(double(j + 1)) + mean);
  return z;
}

template <Storage S>
Block<S> covariance(Index dim) {
  const Block<double> z = features<S>(std::max<Index>(2 * dim, 8), dim, 0).template cast<double>();
  const Block<double> sigma = z.transpose() * z / double(z.rows() - 1);
  return (0.5 * (sigma + sigma.transpose())).template cast<S>();
}

template <Storage S>
double eps() {
  return std::numeric_limits<S>::epsilon();
}

template <Storage S>
void check_space(const cuda::Device& device) {
  cuda::Space<S> space(device);
  const Index rows = 5001, p = 37, q = 19;
  const Block<S> x = gaussian<S>(rows, p, 1), y = gaussian<S>(rows, q, 2);
  cuda::Block<S> a = cuda::to_device<S>(device, x), b = cuda::to_device<S>(device, y);
  const auto name = [](const char* what) { return std::string(type_name<S>()) + " " + what; };
  const Small wide_x = x.template cast<double>(), wide_y = y.template cast<double>();

  const Small ab = gram(space, a, b);
  report(name("Gram matrix, in eps64"),
         (ab - wide_x.transpose() * wide_y).norm() / (wide_x.norm() * wide_y.norm()) / eps<double>(), 30);
  const Small aa = gram(space, a, a);
  report(name("a'a is symmetric to the last bit"), aa == aa.transpose() ? 0 : 1, 0);
  report(name("the same Gram matrix twice"), ab == gram(space, a, b) ? 0 : 1, 0);

  const Small m = Small::Random(p, q);
  auto out = space.make_block(rows, q);
  space.poison(out);
  multiply(space, a, m, out);
  const Small product = wide_x * m;
  const auto error = [&](cuda::ConstView<S> got, const Small& expected) {
    return (cuda::to_host<S>(device, got).template cast<double>() - expected).norm() / expected.norm() / eps<S>();
  };
  report(name("block times small, in eps"), error(out, product), 30);
  multiply(space, a, m, space.columns(a, 0, q));
  report(name("block times small over its own columns"), error(space.columns(a, 0, q), product), 30);
  cuda::copy_to_device<S>(device, x, a);

  // In long double: a plain sum of so many squares is itself known only to sqrt(n) eps64.
  using Real = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
  const Real real_x = x.template cast<long double>(), real_y = y.template cast<long double>();
  const Real lengths = space.column_norms(a).template cast<long double>();
  const long double eps64 = std::numeric_limits<double>::epsilon();
  report(name("column norms, in eps64"),
         double((lengths.transpose() - real_x.colwise().norm()).norm() / real_x.norm() / eps64), 30);
  const auto twin = space.columns(a, 0, q);
  const BlendNorms both = space.blend_norms(twin, b);
  const long double apart = (real_y - real_x.leftCols(q)).squaredNorm();
  report(name("blend norms, in eps64"),
         double((std::abs(both.difference_squared - apart) + std::abs(both.b_squared - real_y.squaredNorm())) / apart /
                eps64),
         30);
  space.blend(twin, b, 1.3, out);
  report(name("blend, in eps"), error(out, -0.3 * wide_x.leftCols(q) + 1.3 * wide_y), 30);

  auto drawn = space.make_block(rows, q);
  space.fill_normal(Random(5, 3), drawn);
  Block<S> expected(rows, q);
  Random(5, 3).fill_normal<S>(expected);
  report(name("random numbers with other bits than the host's"),
         double((cuda::to_host<S>(device, drawn).array() != expected.array()).count()), 0);
  space.poison(drawn);
  report(name("poison is found"), space.is_poisoned(drawn) && !space.is_poisoned(b) ? 0 : 1, 0);
}

// Products in units of eps ||Sigma y||, and runs of both solvers, against the host's.
template <Storage S, class There, class Here>
void check_target(const std::string& label, const There& there, const Here& here, Index rank) {
  const std::string name = std::string(type_name<S>()) + " " + label;
  const cuda::Device& device = there.device();
  const Index d = here.dim();
  report(name + ": trace, in eps", std::abs(there.trace() / here.trace() - 1) / eps<S>(), 30);
  for (const Index cols : {Index(1), rank, Index(3 * rank + 1)}) {
    const Block<S> y = gaussian<S>(d, cols, 3);
    Block<S> expected(d, cols);
    TargetRef<S>(here).apply(y, expected);
    const cuda::Block<S> in = cuda::to_device<S>(device, y);
    cuda::Block<S> out(device, d, cols);
    cuda::Space<S>(device).poison(out);
    there.apply(in, out);
    const Block<S> got = cuda::to_host<S>(device, out);
    const double off = (got - expected).template cast<double>().norm() / expected.template cast<double>().norm();
    report(name + ": product with " + std::to_string(cols) + " columns, in eps sqrt(d)",
           off / eps<S>() / std::sqrt(double(d)), 30);
  }
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    AlignOptions options;
    options.steps = solver == Solver::paper ? 5 : 3;
    options.solver = solver;
    const auto on_device = cuda::align<S>(there, rank, options);
    const auto on_host = align<S>(here, rank, options);
    const std::string run = name + (solver == Solver::paper ? ": paper" : ": ritz");
    // At rounding level the one may see that it has converged a step before the other.
    const std::size_t rows = std::min(on_device.trace.steps.size(), on_host.trace.steps.size());
    if (failed(on_device.status()) || failed(on_host.status()) || rows < 2) {
      std::printf("  %s: device ended as %s (%s), host as %s\n", run.c_str(),
                  std::string(itspace::name(on_device.status())).c_str(), on_device.trace.reason.c_str(),
                  std::string(itspace::name(on_host.status())).c_str());
      ++failures;
      continue;
    }
    double worst = 0;
    bool certified = true;
    for (std::size_t k = 0; k < rows; ++k) {
      const Step &a = on_device.trace.steps[k], &b = on_host.trace.steps[k];
      worst = std::max(worst,
                       std::abs(a.objective - b.objective) / (here.trace() * eps<S>() * double(rank * Index(k + 1))));
      certified = certified && (k == 0 || a.certified.value_or(false) == b.certified.value_or(false));
    }
    report(run + ": objectives against the host's, in r eps (k+1) tr", worst, 60);
    report(run + ": certified where the host is", certified ? 0 : 1, 0);
    const Block<double> y = cuda::to_host<S>(device, on_device.factor).template cast<double>(),
                        z = on_host.factor.template cast<double>();
    // ||yy' - zz'||^2 through r x r matrices.
    const double off =
        (y.transpose() * y).squaredNorm() + (z.transpose() * z).squaredNorm() - 2 * (y.transpose() * z).squaredNorm();
    const double scale = (z.transpose() * z).norm();
    if (solver == Solver::paper)
      report(run + ": YY', in r eps K (sqrt of rounding below)",
             std::sqrt(std::max(0.0, off)) / scale / (double(rank) * double(options.steps + 1) * eps<S>()),
             std::max(60.0, std::sqrt(30 * eps<double>()) / (double(rank) * eps<S>())));
  }
}

template <Storage S>
void check_targets(const cuda::Device& device) {
  const Index d = 300, r = 16;
  const Block<S> sigma = covariance<S>(d);
  check_target<S>("dense", cuda::DenseTarget<S>(device, sigma), DenseTarget<S>(sigma), r);
  const Block<S> z = features<S>(1500, d, 3);
  check_target<S>("features", cuda::FeaturesTarget<S>(device, z), FeaturesTarget<S>(z), r);
  const Eigen::VectorXd weights = Eigen::VectorXd::LinSpaced(1500, 0.1, 2);
  check_target<S>("weighted features", cuda::FeaturesTarget<S>(device, z, weights), FeaturesTarget<S>(z, weights), r);
  const Block<S> t = features<S>(d, 40, 0);
  check_target<S>("factor", cuda::FactorTarget<S>(device, t), FactorTarget<S>(t), r);
  const Eigen::VectorXd lambda = Eigen::VectorXd::LinSpaced(40, 2, 1), diagonal = Eigen::VectorXd::LinSpaced(d, 0.1, 1);
  check_target<S>("low rank + diagonal", cuda::LowRankDiagonalTarget<S>(device, t, lambda, diagonal),
                  LowRankDiagonalTarget<S>(t, lambda, diagonal), r);
}

template <class Call>
double median_seconds(const cuda::Device& device, int repeats, Call call) {
  call();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    device.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    call();
    device.synchronize();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Whole runs, launch and trace included, by the number of steps: all in one launch where that is possible, and by the
// general solvers, with the host in between.
template <Storage S, class There>
void time_target(const std::string& label, const There& target, Index rank, double bytes) {
  const cuda::Device& device = target.device();
  cuda::Space<S> space(device);
  auto y = space.make_block(target.dim(), rank), w = space.make_block(target.dim(), rank);
  space.fill_normal(Random(1), y);
  constexpr int inner = 10;
  const double product = median_seconds(device, 7,
                                        [&] {
                                          for (int i = 0; i < inner; ++i) target.apply(y, w);
                                        }) /
                         inner;
  const cuda::Block<S> start = cuda::align<S>(target, rank, {.steps = 0}).factor;
  const auto step = [&](Solver solver, Index steps, bool watched) {
    AlignOptions options;
    options.solver = solver;
    options.steps = steps;
    cuda::OnStep<S> on_step;
    if (watched) on_step = [](const Step&, const cuda::ConstView<S>&) { return StepAction::proceed; };
    Index made = 0;
    const double seconds = median_seconds(device, 9, [&] {
      made = Index(cuda::align<S>(target, cuda::ConstView<S>(start), options, on_step).trace.steps.size()) - 1;
    });
    return 1e6 * seconds / double(std::max<Index>(1, made));
  };
  std::printf("  %-8s %-28s r=%-4td %10.1f us %8.2f TB/s %12.1f us %12.1f us %12.1f us\n", type_name<S>(),
              label.c_str(), rank, 1e6 * product, bytes / product / 1e12, step(Solver::paper, 20, false),
              step(Solver::paper, 20, true), step(Solver::ritz, 4, true));
  std::fflush(stdout);
}

// Eigenvalues 1/i, turned by a reflection I - 2vv', made on the device a piece at a time: no host needs to hold it.
template <Storage S>
cuda::Block<S> large_covariance(const cuda::Device& device, Index dim) {
  Eigen::VectorXd v(dim), lambda(dim);
  for (Index i = 0; i < dim; ++i) {
    v(i) = Random(3).normal(static_cast<std::uint64_t>(i));
    lambda(i) = 1 / double(i + 1);
  }
  v.normalize();
  const double inner = v.cwiseAbs2().dot(lambda);
  cuda::Block<S> sigma(device, dim, dim);
  constexpr Index step = 512;
  for (Index first = 0; first < dim; first += step) {
    const Index rows = std::min(step, dim - first);
    Block<S> piece(rows, dim);
    for (Index i = 0; i < rows; ++i) {
      const double vi = v(first + i), li = lambda(first + i);
      for (Index j = 0; j < dim; ++j)
        piece(i, j) = static_cast<S>(v(j) * vi * (4 * inner - 2 * (li + lambda(j))) + (j == first + i ? li : 0));
    }
    cuda::copy_to_device<S>(device, piece, cuda::View<S>(sigma.data() + first * dim, rows, dim, dim));
  }
  return sigma;
}

template <Storage S>
void time_features(const cuda::Device& device, Index n, Index d) {
  cuda::Space<S> space(device);
  cuda::Block<S> z = space.make_block(n, d);
  space.fill_normal(Random(2), z);
  time_target<S>("features n=" + std::to_string(n) + " d=" + std::to_string(d),
                 cuda::FeaturesTarget<S>(device, std::move(z)), 16, double(n) * double(d) * sizeof(S));
}

template <Storage S>
void time_all(const cuda::Device& device, bool quick) {
  for (const Index d : quick ? std::vector<Index>{512} : std::vector<Index>{2048, 8192, 32768}) {
    const cuda::DenseTarget<S> dense(device, large_covariance<S>(device, d));
    for (const Index r : quick ? std::vector<Index>{16} : std::vector<Index>{16, 32, 64})
      if (d < 32768 || r == 16)
        time_target<S>("dense d=" + std::to_string(d), dense, r, double(d) * double(d) * sizeof(S));
  }
  device.release_unused();
  time_features<S>(device, quick ? 4096 : 65536, quick ? 256 : 2048);
}

// Sigma_ij = exp(-|i - j|/40): eigenvalues that decay slowly.
template <Storage S>
cuda::Block<S> rough_covariance(const cuda::Device& device, Index dim) {
  Eigen::VectorXd at(dim);
  for (Index i = 0; i < dim; ++i) at(i) = std::exp(-double(i) / 40);
  cuda::Block<S> sigma(device, dim, dim);
  constexpr Index step = 512;
  for (Index first = 0; first < dim; first += step) {
    Block<S> piece(std::min(step, dim - first), dim);
    for (Index i = 0; i < piece.rows(); ++i)
      for (Index j = 0; j < dim; ++j) piece(i, j) = static_cast<S>(at(std::abs(first + i - j)));
    cuda::copy_to_device<S>(device, piece, cuda::View<S>(sigma.data() + first * dim, piece.rows(), dim, dim));
  }
  return sigma;
}

// From one call of on_step to the next, the first two and the last left out: what a step takes in the middle of a run.
template <Storage S>
double median_step(const cuda::DenseTarget<S>& target, const cuda::Block<S>& start, Solver solver) {
  using Clock = std::chrono::steady_clock;
  AlignOptions options;
  options.solver = solver;
  options.steps = 10;
  std::vector<double> seconds;
  for (int run = 0; run < 9; ++run) {
    std::vector<Clock::time_point> at;
    cuda::align<S>(target, cuda::ConstView<S>(start), options, [&](const Step&, const cuda::ConstView<S>&) {
      at.push_back(Clock::now());
      return StepAction::proceed;
    });
    for (std::size_t k = 3; run > 0 && k + 1 < at.size(); ++k)
      seconds.push_back(std::chrono::duration<double>(at[k] - at[k - 1]).count());
  }
  if (seconds.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(seconds.begin(), seconds.end());
  return 1e6 * seconds[seconds.size() / 2];
}

template <Storage S>
void time_steps(const cuda::Device& device) {
  constexpr Index rank = 16;
  for (const Index d : {2048, 8192})
    for (const bool rough : {false, true}) {
      const cuda::DenseTarget<S> target(device,
                                        rough ? rough_covariance<S>(device, d) : large_covariance<S>(device, d));
      const cuda::Block<S> start = cuda::align<S>(target, rank, {.steps = 0}).factor;
      const double paper = median_step<S>(target, start, Solver::paper),
                   ritz = median_step<S>(target, start, Solver::ritz);
      std::printf("  %-8s d=%-5td %-8s r=%-4td %10.1f us %10.1f us %8.2f\n", type_name<S>(), d, rough ? "rough" : "1/i",
                  rank, paper, ritz, ritz / paper);
      std::fflush(stdout);
    }
}

// A batch from memory of the device beside the host's from its own, both with two threads of the host: whole calls.
template <Storage S>
void time_batch(const cuda::Device& device, Index count, Index d, Index r) {
  constexpr Index distinct = 50;
  Block<S> sigma(count * d, d);
  const Block<S> start = gaussian<S>(count * d, r, 4);
  for (Index i = 0; i < count; ++i) {
    auto here = sigma.middleRows(i * d, d);
    if (i >= distinct) {
      here = sigma.middleRows((i % distinct) * d, d);
      continue;
    }
    Block<double> z = gaussian<double>(2 * d, d, static_cast<std::uint64_t>(100 + i));
    for (Index j = 0; j < d; ++j) z.col(j) /= std::sqrt(double(j + 1));
    const Block<double> product = z.transpose() * z / double(2 * d - 1);
    here = (0.5 * (product + product.transpose())).template cast<S>();
  }
  const MatrixStack<S> targets{sigma.data(), count, d, d}, starts{start.data(), count, d, r};
  const cuda::Block<S> sigma_there = cuda::to_device(device, targets), start_there = cuda::to_device(device, starts);
  const ThreadScope two(2);
  BatchResult<S> here;
  cuda::BatchResult<S> there;
  const double on_device = median_seconds(device, 9, [&] {
    there = cuda::align_batch<S>(device, {sigma_there.data(), count, d, d}, {start_there.data(), count, d, r});
  });
  const double on_host = median_seconds(device, 3, [&] { here = align_batch<S>(targets, starts); });
  const auto made = std::count(there.on_device.begin(), there.on_device.end(), std::uint8_t(1));
  std::printf("  %-8s %td of d=%-4td r=%-4td K=2 %16.2f ms %12.2f ms %8.1f x, %td in one launch\n", type_name<S>(),
              count, d, r, 1e3 * on_device, 1e3 * on_host, on_host / on_device, made);
  const std::string label = std::string(type_name<S>()) + " batch d=" + std::to_string(d) + " r=" + std::to_string(r);
  double worst = 0;
  for (Index i = 0; i < count; ++i)
    for (Index k = 0; k <= 2; ++k)
      worst = std::max(worst, std::abs(there.objectives(i, k) - here.objectives(i, k)) /
                                  ((start.middleRows(i * d, d).template cast<double>().squaredNorm() + double(d)) *
                                   eps<S>() * double(r * (k + 1))));
  report(label + ": objectives against the host's", worst, 60);
  report(label + ": statuses against the host's", there.status == here.status ? 0 : 1, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string asked = argc > 1 ? argv[1] : "";
  const bool quick = asked == "--quick", batches = asked == "--batches", features_only = asked == "--features",
             steps_only = asked == "--steps";
  if (const std::string why = itspace::cuda::why_no_device(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  try {
    const itspace::cuda::Device device(0);
    const auto properties = device.properties();
    std::printf("%s, compute capability %d.%d, %d multiprocessors, driver %d, runtime %d\n", properties.name.c_str(),
                properties.major, properties.minor, properties.multiprocessors, properties.driver_version,
                properties.runtime_version);
    const auto print_heading = [] {
      std::printf("\n  %-8s %-28s %-6s %13s %13s %15s %15s %15s\n", "type", "target", "", "product", "bandwidth",
                  "K=20, a step", "host between", "ritz, K=4");
    };
    if (features_only) {
      print_heading();
      for (const auto& [n, d] : {std::pair<Index, Index>{65536, 2048}, {131072, 1024}, {400000, 256}, {40000, 4096}})
        time_features<float>(device, n, d);
      return 0;
    }
    const auto time_single_steps = [&] {
      std::printf("\n  %-32s %13s %13s %8s\n", "single steps, host in between", "paper", "ritz", "ratio");
      time_steps<float>(device);
      time_steps<double>(device);
    };
    if (steps_only) {
      time_single_steps();
      return 0;
    }
    if (!batches) {
      std::printf("\nagainst the host: error and limit\n");
      check_space<float>(device);
      check_space<double>(device);
      check_targets<float>(device);
      check_targets<double>(device);
      print_heading();
      time_all<float>(device, quick);
      time_all<double>(device, quick);
      if (!quick) time_single_steps();
    }
    std::printf("\n  batches, whole calls with two threads of the host: the device's and the host's\n");
    for (const Index d : {Index(64), Index(128)})
      for (const Index r : {Index(8), Index(16)}) {
        const Index count = quick ? 200 : d == 64 ? 10000 : 2500;
        time_batch<float>(device, count, d, r);
        time_batch<double>(device, count, d, r);
      }
  } catch (const std::exception& error) {
    std::printf("ended by an error: %s\n", error.what());
    ++failures;
  }
  std::printf("\n%s (%d wrong)\n", failures == 0 ? "ALL WELL" : "NOT WELL", failures);
  return failures == 0 ? 0 : 1;
}
