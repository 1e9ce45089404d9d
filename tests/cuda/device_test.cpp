// SPDX-License-Identifier: Apache-2.0
//
// Errors in words: no device, the wrong one, an old one, no memory. What there is no device to show is shown by the
// texts; where there is one, the process goes on after each.
#include "cuda/error.hpp"
#include "on_device.hpp"

#include <stdexcept>

namespace itspace::test {
namespace {

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaErrors, NoDeviceIsSaidInWords) {
  if (cuda::why_no_device().empty()) GTEST_SKIP() << "this machine has a CUDA device";
  EXPECT_EQ(cuda::device_count(), 0);
  const std::string text = error_of([] { cuda::Device device(0); });
  EXPECT_EQ(text, cuda::why_no_device());
  EXPECT_TRUE(says(text, "no CUDA device")) << text;
  EXPECT_TRUE(says(text, "CPU")) << text;
  // The host's solvers are not disturbed.
  const auto p = make_problem<float>({.dim = 17, .rank = 2, .seed = 1});
  EXPECT_EQ(align<float>(DenseTarget<float>(p.sigma), p.start).status(), Status::step_limit);
}

TEST(CudaErrors, Texts) {
  EXPECT_EQ(cuda::no_device_text(cudaSuccess), "");
  EXPECT_TRUE(says(cuda::no_device_text(cudaErrorInsufficientDriver), "driver"));
  EXPECT_TRUE(says(cuda::no_device_text(cudaErrorNoDevice), "CUDA_VISIBLE_DEVICES"));
  EXPECT_TRUE(says(cuda::no_device_text(cudaErrorSystemNotReady), "cudaErrorSystemNotReady"));
  EXPECT_TRUE(says(cuda::no_such_device_text(3, 1), "device 3 was asked for, and this machine has 1 device,"));
  EXPECT_EQ(cuda::old_device_text("H200", 9, 0), "");
  EXPECT_EQ(cuda::old_device_text("A100", 8, 0), "");
  EXPECT_TRUE(says(cuda::old_device_text("V100", 7, 0), "V100 has compute capability 7.0, and 8.0"));
  const std::string memory = cuda::out_of_memory_text(3221225472, 1073741824, 2147483648);
  EXPECT_TRUE(says(memory, "3221225472 bytes (3 GiB) were asked for, 1073741824 bytes (1 GiB) of")) << memory;
  const std::string other = error_of([] { cuda::fail(cudaErrorNoKernelImageForDevice, "loading the kernels"); });
  EXPECT_TRUE(says(other, "loading the kernels") && says(other, "CMAKE_CUDA_ARCHITECTURES")) << other;
}

TEST(CudaDevice, RefusesOneThatIsNotThere) {
  ITSPACE_NEEDS_DEVICE();
  const int count = cuda::device_count();
  EXPECT_EQ(error_of([&] { cuda::Device device(count); }), cuda::no_such_device_text(count, count));
  EXPECT_EQ(error_of([&] { cuda::Device device(-1); }), cuda::no_such_device_text(-1, count));
  EXPECT_GT(device().properties().memory_bytes, 0u);
}

TEST(CudaDevice, OutOfMemoryNamesBytesAndGoesOn) {
  ITSPACE_NEEDS_DEVICE();
  const cuda::Device own(0);
  const std::size_t free_before = own.properties().free_bytes;
  const std::string text = error_of([&] { cuda::Block<double> huge(own, Index(1) << 32, 1 << 12); });
  EXPECT_TRUE(says(text, "out of memory: 140737488355328 bytes")) << text;
  EXPECT_TRUE(says(text, "are free")) << text;
  const auto p = make_problem<double>({.dim = 17, .rank = 2, .seed = 1});
  const cuda::DenseTarget<double> target(own, p.sigma);
  EXPECT_EQ(cuda::align<double>(target, p.start).status(), Status::step_limit);
  own.release_unused();
  // What a run leaves is scratch: no block stays behind.
  EXPECT_LE(free_before - own.properties().free_bytes, std::size_t(64) << 20);
}

// Blocks of the same size are had again without asking CUDA, and a Device may go before its blocks.
TEST(CudaDevice, MemoryIsKeptAndOutlivesTheDevice) {
  ITSPACE_NEEDS_DEVICE();
  cuda::Block<float> outlives;
  const float* first = nullptr;
  {
    const cuda::Device own(0);
    first = cuda::Block<float>(own, 100, 7).data();
    EXPECT_EQ(cuda::Block<float>(own, 100, 7).data(), first);
    outlives = cuda::to_device<float>(own, Block<float>::Constant(3, 2, 5.0f));
  }
  EXPECT_EQ(cuda::to_host<float>(device(), outlives)(2, 1), 5.0f);
}

TEST(CudaDevice, MisuseIsRefusedBeforeAnythingIsLaunched) {
  ITSPACE_NEEDS_DEVICE();
  const auto p = make_problem<float>({.dim = 17, .rank = 2, .seed = 1});
  const cuda::DenseTarget<float> target(device(), p.sigma);
  EXPECT_THROW(cuda::DenseTarget<float>(device(), p.start), std::invalid_argument);
  EXPECT_THROW(cuda::align<float>(target, Block<float>(5, 2)), std::invalid_argument);
  EXPECT_THROW(cuda::align<float>(target, 18), std::invalid_argument);
  AlignOptions root;
  root.route = Route::root;
  EXPECT_THROW(cuda::align<float>(target, p.start, root), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::test
