// SPDX-License-Identifier: Apache-2.0
#include "ranks_input.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>

namespace itspace::cli {

namespace {

struct FileSeen {
  std::string shape, values;
};

// `read(i, row)` reads one row.
template <class Read>
std::string fingerprints(Index rows, Index cols, const Read& read) {
  std::string found;
  Block<double> row(1, cols);
  for (const Index i : {Index(0), rows / 2, rows - 1}) {
    if (i < 0 || i >= rows) continue;
    read(i, row);
    found += fmt::format("{:016x} ", mpi::fingerprint<double>(row));
  }
  return found;
}

void check_seen(const mpi::Communicator& ranks, const Request& request, const FileSeen& here) {
  const FileSeen first{ranks.broadcast(here.shape), ranks.broadcast(here.values)};
  constexpr auto remedy = "give all ranks the same file, by a path that leads to it on every machine";
  ranks.agree([&] {
    if (here.shape != first.shape)
      throw std::runtime_error(fmt::format("{} {} is {}, but on rank 0 it is {}\n{}", request.role,
                                           quoted(request.path), here.shape, first.shape, remedy));
    if (here.values != first.values)
      throw std::runtime_error(fmt::format("{} {} has other values than on rank 0, though the same shape\n{}",
                                           request.role, quoted(request.path), remedy));
  });
}

template <Storage Data>
HeldBlock<Data> rows_of_share(const io::Array& array, Index first, Index count) {
  if (array.is_borrowed<Data>()) {
    const auto whole = std::make_shared<const HeldBlock<Data>>(array.as<Data>());
    const auto view = whole->view();
    return HeldBlock<Data>(whole,
                           borrow(view.data() + first * view.outerStride(), count, view.cols(), view.outerStride()));
  }
  Block<Data> rows(count, array.cols());
  if (count > 0) array.read_rows<Data>(first, rows);
  return HeldBlock<Data>(std::move(rows));
}

}  // namespace

void check_same_file(const mpi::Communicator& ranks, const Request& request, const io::Array& array) {
  const auto read = [&](Index i, Block<double>& row) { array.read_rows<double>(i, row); };
  check_seen(ranks, request,
             {fmt::format("{} {}", array.info().type, shape_text(array.rows(), array.cols())),
              fingerprints(array.rows(), array.cols(), read)});
}

void check_same_files(const mpi::Communicator& ranks, const Request& request, const io::RowFiles& files) {
  FileSeen here{
      fmt::format("{} {} in {} file(s)", files.type(), shape_text(files.rows(), files.cols()), files.paths().size()),
      ""};
  ranks.agree([&] {
    here.values = fingerprints(files.rows(), files.cols(),
                               [&](Index i, Block<double>& row) { files.source<double>(i, 1)->read(row); });
  });
  check_seen(ranks, request, here);
}

Verdict kind_of(const TargetArguments& given, const io::Array& array) {
  const Request& request = given.request;
  const Index rows = array.rows(), cols = array.cols();
  const auto path = quoted(request.path);
  if (rows == 0 || cols == 0)
    misuse(fmt::format("{} is {}, which holds no values", path, shape_text(rows, cols)),
           "give an array with at least one row and one column");
  Verdict verdict{request.as, "as " + request.as_option + " says"};
  if (request.as == Kind::automatic && array.info().key == "sigma") verdict = {Kind::covariance, "named sigma"};
  if (request.as == Kind::automatic && verdict.kind == Kind::automatic) {
    if (rows == cols)
      misuse(fmt::format("{} is {}: a covariance or features, and no rank reads all of it to tell", path,
                         shape_text(rows, cols)),
             fmt::format("say what it is with {} covariance or {} features", request.as_option, request.as_option));
    verdict = {Kind::features,
               fmt::format("{}: one sample per row", array.info().shape.size() < 2 ? as_one_column : "not square")};
  }
  if (verdict.kind == Kind::factor)
    misuse(fmt::format("{} is taken for a factor, which is not spread over ranks", path),
           "leave out mpirun: a factor is small");
  if (verdict.kind == Kind::features && rows < 2)
    misuse(fmt::format("{} holds 1 sample ({}), but a covariance needs at least 2", path, shape_text(rows, cols)),
           "give features with one sample per row");
  if (verdict.kind == Kind::covariance && rows != cols)
    misuse(fmt::format("{} is {}, but a covariance is square", path, shape_text(rows, cols)),
           fmt::format("give a d x d matrix, or samples in rows with {} features", request.as_option));
  if (verdict.kind == Kind::covariance && !given.trust)
    misuse(fmt::format("{}: no rank reads all of a covariance under mpirun, so nobody checks that it is symmetric and "
                       "positive semidefinite",
                       path),
           "add --trust for a matrix that is known to be a covariance");
  return verdict;
}

template <Storage Data>
HeldBlock<Data> own_rows(const mpi::Communicator& ranks, const io::Array& array, const std::filesystem::path& path) {
  const Index first = ranks.first_row(array.rows());
  HeldBlock<Data> own = rows_of_share<Data>(array, first, ranks.own_rows(array.rows()));
  check_finite_rows<Data>(own.view(), first, quoted(path));
  return own;
}
template HeldBlock<float> own_rows(const mpi::Communicator&, const io::Array&, const std::filesystem::path&);
template HeldBlock<double> own_rows(const mpi::Communicator&, const io::Array&, const std::filesystem::path&);

}  // namespace itspace::cli
