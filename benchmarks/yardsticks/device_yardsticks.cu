// Measures products by cuBLASLt, copies by the runtime, and a kernel that only reads.
#include "benchmarks/yardsticks/device_yardsticks.h"

#include <cublasLt.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/precision.h"
#include "common/parallel/layout.h"
#include "common/platform/monotonic_clock.h"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/cuda_staging.cuh"

#define HDPS_CUBLAS_LT_CHECK(call) \
  CHECK((call) == CUBLAS_STATUS_SUCCESS) << "cuBLASLt refuses " << #call

namespace hdps {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr int kAlgorithms = 8;  // Algorithms to try for a product.
constexpr size_t kReadBlocks = 4096;

// Sums what each thread reads, so that the compiler keeps all reads.
__global__ void ReadOnce(const uint4* from, size_t count, unsigned* sums) {
  const size_t first = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const size_t threads = size_t{gridDim.x} * blockDim.x;
  unsigned sum = 0;
  for (size_t i = first; i < count; i += threads) {
    const uint4 four = from[i];
    sum += four.x ^ four.y ^ four.z ^ four.w;
  }
  sums[first] = sum;
}

// Format of numbers in memory, and precision of their products.
struct Arithmetic {
  cudaDataType_t type;
  size_t bytes;
  cublasComputeType_t compute;
};
Arithmetic ArithmeticOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return {CUDA_R_32F, 4, CUBLAS_COMPUTE_32F};
    case Precision::kTf32:
      return {CUDA_R_32F, 4, CUBLAS_COMPUTE_32F_FAST_TF32};
    case Precision::kBf16:
      return {CUDA_R_16BF, 2, CUBLAS_COMPUTE_32F};
  }
  return {CUDA_R_32F, 4, CUBLAS_COMPUTE_32F};
}

// A row-major matrix whose rows are a multiple of 16 bytes apart. Its values are zeros, which take
// as long as others.
struct Operand {
  size_t rows = 0, cols = 0, stride = 0;
  cudaDataType_t type = CUDA_R_32F;
  CudaArray<std::byte> memory;

  void Make(size_t row_count, size_t col_count, cudaDataType_t of_type, size_t bytes,
            cudaStream_t stream) {
    rows = row_count;
    cols = col_count;
    stride = (cols * bytes + 15) / 16 * 16 / bytes;
    type = of_type;
    const size_t size = rows * stride * bytes;
    HDPS_CUDA_CHECK(cudaMemsetAsync(memory.Reserve(size), 0, size, stream));
  }
};

// Destroys a descriptor with its owner.
template <typename T, auto kDestroy>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (value_ != nullptr) kDestroy(value_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T* put() { return &value_; }
  operator T() const { return value_; }

 private:
  T value_ = nullptr;
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

// Computes c = op(a) op(b), all row-major. cuBLASLt is column-major, so it computes c^T = op(b)^T
// op(a)^T.
class LtProduct {
 public:
  LtProduct(const Operand& a, bool transpose_a, const Operand& b, bool transpose_b, Operand& c,
            cublasComputeType_t compute)
      : a_(a.memory.data()), b_(b.memory.data()), c_(c.memory.data()) {
    HDPS_CUBLAS_LT_CHECK(cublasLtMatmulDescCreate(what_.put(), compute, CUDA_R_32F));
    SetTranspose(CUBLASLT_MATMUL_DESC_TRANSA, transpose_b);
    SetTranspose(CUBLASLT_MATMUL_DESC_TRANSB, transpose_a);
    SetLayout(of_a_, a);
    SetLayout(of_b_, b);
    SetLayout(of_c_, c);
    name_ = std::to_string(c.rows) + " x " + std::to_string(c.cols) + " over " +
            std::to_string(transpose_a ? a.rows : a.cols);
  }

  // Chooses the fastest of the offered algorithms.
  Status Choose(cublasLtHandle_t blas, cudaStream_t stream, void* workspace,
                const std::function<double(const std::function<void()>&)>& seconds_of) {
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    HDPS_CUBLAS_LT_CHECK(cublasLtMatmulPreferenceCreate(preference.put()));
    HDPS_CUBLAS_LT_CHECK(
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &kWorkspaceBytes, sizeof(kWorkspaceBytes)));
    // Excludes in-place sums, as hdps does, because they depend on the order of threads.
    const uint32_t reductions =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    HDPS_CUBLAS_LT_CHECK(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions)));
    cublasLtMatmulHeuristicResult_t offers[kAlgorithms] = {};
    int count = 0;
    if (cublasLtMatmulAlgoGetHeuristic(blas, what_, of_b_, of_a_, of_c_, of_c_, preference,
                                       kAlgorithms, offers, &count) != CUBLAS_STATUS_SUCCESS) {
      count = 0;
    }
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < count; ++i) {
      if (offers[i].state != CUBLAS_STATUS_SUCCESS) continue;
      const auto run = [&] { return RunBy(offers[i].algo, blas, stream, workspace); };
      if (run() != CUBLAS_STATUS_SUCCESS) continue;  // Loads the code before timing.
      const double seconds = seconds_of([&] { run(), run(); });
      if (seconds >= least) continue;
      least = seconds;
      algorithm_ = offers[i].algo;
    }
    if (least < std::numeric_limits<double>::infinity()) return Status();
    return Status(Code::kUnavailable, "cuBLASLt has no algorithm for a product of " + name_);
  }
  void Run(cublasLtHandle_t blas, cudaStream_t stream, void* workspace) const {
    HDPS_CUBLAS_LT_CHECK(RunBy(algorithm_, blas, stream, workspace));
  }

 private:
  void SetTranspose(cublasLtMatmulDescAttributes_t which, bool transpose) {
    const cublasOperation_t order = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    HDPS_CUBLAS_LT_CHECK(cublasLtMatmulDescSetAttribute(what_, which, &order, sizeof(order)));
  }
  static void SetLayout(Layout& layout, const Operand& of) {
    HDPS_CUBLAS_LT_CHECK(cublasLtMatrixLayoutCreate(layout.put(), of.type, of.cols, of.rows,
                                                    static_cast<int64_t>(of.stride)));
  }
  cublasStatus_t RunBy(const cublasLtMatmulAlgo_t& algorithm, cublasLtHandle_t blas,
                       cudaStream_t stream, void* workspace) const {
    const float one = 1, zero = 0;
    return cublasLtMatmul(blas, what_, &one, b_, of_b_, a_, of_a_, &zero, c_, of_c_, c_, of_c_,
                          &algorithm, workspace, kWorkspaceBytes, stream);
  }

  const void* const a_;
  const void* const b_;
  void* const c_;
  std::string name_;
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> what_;
  Layout of_a_, of_b_, of_c_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

class CudaYardsticks : public DeviceYardsticks {
 public:
  CudaYardsticks() : clock_(NewSystemClock()) { HDPS_CUBLAS_LT_CHECK(cublasLtCreate(blas_.put())); }

  Result<double> Products(std::span<const Product> products, size_t batch, Precision precision,
                          int times) override;
  double BusCopies(size_t up_bytes, size_t down_bytes, int times) override;
  double MemoryCopies(size_t bytes, int times) override;
  double MemoryReads(size_t bytes, int times) override;

 private:
  double SecondsOf(const std::function<void()>& work) {
    HDPS_CUDA_CHECK(cudaDeviceSynchronize());
    const int64_t begin_ns = clock_->NowNs();
    work();
    HDPS_CUDA_CHECK(cudaDeviceSynchronize());
    return static_cast<double>(clock_->NowNs() - begin_ns) * 1e-9;
  }

  const std::unique_ptr<MonotonicClock> clock_;
  CudaStream stream_, up_stream_, down_stream_;
  Owned<cublasLtHandle_t, cublasLtDestroy> blas_;
};

Result<double> CudaYardsticks::Products(std::span<const Product> products, size_t batch,
                                        Precision precision, int times) {
  const Arithmetic arithmetic = ArithmeticOf(precision);
  struct Layer {
    Operand in, weights, out, weight_gradient;
  };
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<std::unique_ptr<LtProduct>> steps;
  CudaArray<std::byte> workspace_memory;
  std::byte* const workspace = workspace_memory.Reserve(kWorkspaceBytes);
  for (const Product& product : products) {
    Layer& layer = *layers.emplace_back(std::make_unique<Layer>());
    const auto make = [&](Operand& operand, size_t rows, size_t cols) {
      operand.Make(rows, cols, arithmetic.type, arithmetic.bytes, stream_);
    };
    make(layer.in, batch, product.inputs);
    make(layer.weights, product.inputs, product.units);
    make(layer.out, batch, product.units);
    // Gradients of weights stay floats.
    layer.weight_gradient.Make(product.inputs, product.units, CUDA_R_32F, 4, stream_);
    const auto add = [&](const Operand& a, bool transpose_a, const Operand& b, bool transpose_b,
                         Operand& c) {
      steps.push_back(
          std::make_unique<LtProduct>(a, transpose_a, b, transpose_b, c, arithmetic.compute));
      return steps.back()->Choose(blas_, stream_, workspace,
                                  [this](const auto& work) { return SecondsOf(work); });
    };
    HDPS_RETURN_IF_ERROR(add(layer.in, false, layer.weights, false, layer.out));
    HDPS_RETURN_IF_ERROR(add(layer.in, true, layer.out, false, layer.weight_gradient));
    HDPS_RETURN_IF_ERROR(add(layer.out, false, layer.weights, true, layer.in));
  }
  return SecondsOf([&] {
    for (int i = 0; i < times; ++i) {
      for (const auto& step : steps) step->Run(blas_, stream_, workspace);
    }
  });
}

double CudaYardsticks::BusCopies(size_t up_bytes, size_t down_bytes, int times) {
  PinnedMemory up, down;
  CudaArray<std::byte> to, from;
  const auto copies = [&](int count) {
    for (int i = 0; i < count; ++i) {
      if (up_bytes > 0) {
        HDPS_CUDA_CHECK(
            cudaMemcpyAsync(to.data(), up.data(), up_bytes, cudaMemcpyHostToDevice, up_stream_));
      }
      if (down_bytes > 0) {
        HDPS_CUDA_CHECK(cudaMemcpyAsync(down.data(), from.data(), down_bytes,
                                        cudaMemcpyDeviceToHost, down_stream_));
      }
    }
  };
  if (up_bytes > 0) up.Reserve(up_bytes, 0), to.Reserve(up_bytes);
  if (down_bytes > 0) down.Reserve(down_bytes, 0), from.Reserve(down_bytes);
  copies(1);
  return SecondsOf([&] { copies(times); });
}

double CudaYardsticks::MemoryCopies(size_t bytes, int times) {
  CudaArray<std::byte> from, to;
  HDPS_CUDA_CHECK(cudaMemsetAsync(from.Reserve(bytes), 0, bytes, stream_));
  to.Reserve(bytes);
  const auto copies = [&](int count) {
    for (int i = 0; i < count; ++i) {
      HDPS_CUDA_CHECK(
          cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream_));
    }
  };
  copies(1);
  return SecondsOf([&] { copies(times); });
}

double CudaYardsticks::MemoryReads(size_t bytes, int times) {
  const size_t count = bytes / sizeof(uint4);
  const auto blocks =
      static_cast<unsigned>(std::clamp<size_t>(count / kThreadsABlock, 1, kReadBlocks));
  CudaArray<uint4> from;
  CudaArray<unsigned> sums;
  HDPS_CUDA_CHECK(cudaMemsetAsync(from.Reserve(count), 0, count * sizeof(uint4), stream_));
  sums.Reserve(size_t{blocks} * kThreadsABlock);
  const auto reads = [&](int repeats) {
    for (int i = 0; i < repeats; ++i) {
      StartKernel(ReadOnce, blocks, kThreadsABlock, stream_, from.data(), count, sums.data());
    }
  };
  reads(1);
  return SecondsOf([&] { reads(times); });
}

}  // namespace

Result<std::unique_ptr<DeviceYardsticks>> DeviceYardsticks::Make() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    const char* const reason = error != cudaSuccess ? cudaGetErrorString(error) : "it lists none";
    return Status(Code::kNotFound, std::string("no CUDA device found (driver: ") + reason + ")");
  }
  return std::unique_ptr<DeviceYardsticks>(std::make_unique<CudaYardsticks>());
}

}  // namespace hdps
