// SPDX-License-Identifier: Apache-2.0
#include "cuda/linear_algebra.hpp"

#include "core/require.hpp"
#include "cuda/loaded_functions.hpp"
#include "cuda/views.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

namespace itspace::cuda {
namespace {

// The functions, as the headers of CUDA 11 to 13 declare them; enumerations are ints there.
constexpr int no_transpose = 0, transpose = 1, fill_upper = 1, success = 0;

struct Functions {
  int (*create)(void**);
  int (*destroy)(void*);
  int (*set_stream)(void*, cudaStream_t);
  int (*gemm)(void*, int, int, int, int, int, const double*, const double*, int, const double*, int, const double*,
              double*, int);
  int (*dot)(void*, int, const double*, int, const double*, int, double*);
  int (*solver_create)(void**);
  int (*solver_destroy)(void*);
  int (*solver_set_stream)(void*, cudaStream_t);
  int (*potrf_size)(void*, int, int, double*, int, int*);
  int (*potrf)(void*, int, int, double*, int, double*, int, int*);
};

void* opened(std::initializer_list<const char*> names, const std::string& folder) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
    if (folder.empty()) continue;
    // Side by side, or each in a folder of its own, as Python's packages have them.
    for (const char* way : {"/", "/../../cusolver/lib/", "/../../cu13/lib/"})
      if (void* library = dlopen((folder + way + name).c_str(), RTLD_NOW)) return library;
  }
  return nullptr;
}

std::string folder_of(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return "";
  const std::string path = map->l_name;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  find_function(library, name, "CUDA",
                "the library that should have it; install cuBLAS and cuSOLVER of CUDA 12 or 13, or compute on the CPU",
                function);
}

const Functions& functions() {
  static const Functions found = [] {
    void* cublas = opened({"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, "");
    void* cusolver = cublas == nullptr
                         ? nullptr
                         : opened({"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"}, folder_of(cublas));
    if (cublas == nullptr || cusolver == nullptr)
      throw std::runtime_error(
          text("CUDA: distances on a device need ", cublas == nullptr ? "libcublas" : "libcusolver",
               ", which was not found; it comes with the CUDA toolkit and with PyTorch: add its folder to "
               "LD_LIBRARY_PATH, or compute on the CPU"));
    Functions all{};
    find(cublas, "cublasCreate_v2", all.create);
    find(cublas, "cublasDestroy_v2", all.destroy);
    find(cublas, "cublasSetStream_v2", all.set_stream);
    find(cublas, "cublasDgemm_v2", all.gemm);
    find(cublas, "cublasDdot_v2", all.dot);
    find(cusolver, "cusolverDnCreate", all.solver_create);
    find(cusolver, "cusolverDnDestroy", all.solver_destroy);
    find(cusolver, "cusolverDnSetStream", all.solver_set_stream);
    find(cusolver, "cusolverDnDpotrf_bufferSize", all.potrf_size);
    find(cusolver, "cusolverDnDpotrf", all.potrf);
    return all;
  }();
  return found;
}

void check_status(int status, const char* what) {
  if (status != success) throw std::runtime_error(text("CUDA: ", what, " failed with status ", status));
}

static_assert(most_square_dim * most_square_dim <= std::numeric_limits<int>::max() &&
              (most_square_dim + 1) * (most_square_dim + 1) > std::numeric_limits<int>::max());

int as_int(Index count) {
  require(count <= std::numeric_limits<int>::max(), "a matrix has ", count,
          " values, more than cuBLAS counts; compute on the CPU");
  return static_cast<int>(count);
}

}  // namespace

LinearAlgebra& LinearAlgebra::of(DeviceState& state) {
  if (!state.linear_algebra) state.linear_algebra = std::make_shared<LinearAlgebra>(state.stream());
  return *state.linear_algebra;
}

LinearAlgebra::LinearAlgebra(cudaStream_t stream) {
  const Functions& call = functions();
  check_status(call.create(&cublas_), "starting cuBLAS");
  const int status = call.set_stream(cublas_, stream);
  if (status != success) call.destroy(cublas_);
  check_status(status, "giving cuBLAS a stream");
}

LinearAlgebra::~LinearAlgebra() {
  for (std::size_t which = 0; which < solvers_.size(); ++which) solvers_[which].release(which > 0);
  functions().destroy(cublas_);
}

LinearAlgebra::Solver& LinearAlgebra::solver(DeviceState& state, std::size_t which) {
  while (solvers_.size() <= which) {
    const bool own = !solvers_.empty();
    Solver made;
    try {
      made.make_on(state.stream(), own);
      solvers_.push_back(made);
    } catch (...) {
      made.release(own);
      throw;
    }
  }
  return solvers_[which];
}

void LinearAlgebra::Solver::make_on(cudaStream_t of_state, bool own) {
  stream = of_state;
  if (own) {
    stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    check(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming), "creating an event");
  }
  check_status(functions().solver_create(&handle), "starting cuSOLVER");
  check_status(functions().solver_set_stream(handle, stream), "giving cuSOLVER a stream");
}

void LinearAlgebra::Solver::release(bool own) noexcept {
  if (handle != nullptr) functions().solver_destroy(handle);
  if (reached != nullptr) cudaEventDestroy(reached);
  if (own && stream != nullptr) cudaStreamDestroy(stream);
}

// cuBLAS has columns one after the other: to it our c is c', and c' = op(b)' op(a)'.
void LinearAlgebra::multiply(bool transpose_a, const double* a, bool transpose_b, const double* b, Index m, Index k,
                             Index n, double beta, double* c) {
  const double one = 1;
  const Index a_width = transpose_a ? m : k, b_width = transpose_b ? k : n;
  check_status(functions().gemm(cublas_, transpose_b ? transpose : no_transpose, transpose_a ? transpose : no_transpose,
                                as_int(n), as_int(m), as_int(k), &one, b, as_int(b_width), a, as_int(a_width), &beta, c,
                                as_int(n)),
               "a product by cuBLAS");
}

double LinearAlgebra::inner(const double* a, const double* b, Index count) {
  double sum = 0;
  check_status(functions().dot(cublas_, as_int(count), a, 1, b, 1, &sum), "an inner product by cuBLAS");
  return sum;
}

bool LinearAlgebra::cholesky(DeviceState& state, std::initializer_list<double*> matrices, Index d) {
  const std::size_t count = matrices.size();
  int size = 0, status = success;
  // Our lower triangle is the upper one of columns one after the other.
  check_status(
      functions().potrf_size(solver(state, 0).handle, fill_upper, as_int(d), *matrices.begin(), as_int(d), &size),
      "asking cuSOLVER for the size of its workspace");
  auto* work = state.scratch<double>(Scratch::product, static_cast<Index>(count) * size);
  int* info = state.scratch<int>(Scratch::flags, static_cast<Index>(2 * count));
  int* found = reinterpret_cast<int*>(state.results(static_cast<Index>(count)));
  // The other streams begin where this one is, and it goes on where they are through.
  for (std::size_t which = 1; which < count; ++which) {
    const Solver& side = solver(state, which);
    check(cudaEventRecord(side.reached, state.stream()), "marking a place in a stream");
    check(cudaStreamWaitEvent(side.stream, side.reached, 0), "ordering two streams");
  }
  for (std::size_t which = 0; which < count; ++which) {
    const int launched =
        functions().potrf(solvers_[which].handle, fill_upper, as_int(d), matrices.begin()[which], as_int(d),
                          work + which * static_cast<std::size_t>(size), size, info + which);
    if (launched != success) status = launched;
  }
  for (std::size_t which = 1; which < count; ++which) {
    check(cudaEventRecord(solvers_[which].reached, solvers_[which].stream), "marking a place in a stream");
    check(cudaStreamWaitEvent(state.stream(), solvers_[which].reached, 0), "ordering two streams");
  }
  check_status(status, "a Cholesky factor by cuSOLVER");
  check(cudaMemcpyAsync(found, info, count * sizeof(int), cudaMemcpyDeviceToHost, state.stream()), "reading a status");
  state.synchronize();
  return std::all_of(found, found + count, [](int of) { return of == 0; });
}

// Gathered there first: single values a stride apart cross one by one, which takes longer than a product.
itspace::Block<double> diagonal_of(const Device& device, const double* a, Index d) {
  const UseDevice use(device.ordinal());
  Block<double> gathered(device, d, 1);
  kernels::widen<double>(device.state().stream(), in(ConstView<double>(a, d, 1, d + 1)), nullptr,
                         out(View<double>(gathered)));
  return to_host<double>(device, gathered);
}

}  // namespace itspace::cuda
