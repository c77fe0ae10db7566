// Dense operations on the GPU: products by cuBLAS, the rest by our kernels, all on one stream.
#include <cublas_v2.h>

#include <string>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"
#include "kernels/cuda/cuda_row_slab.cuh"
#include "kernels/cuda/cuda_staging.cuh"

#define HDPS_CUBLAS_CHECK(call)                                  \
  do {                                                           \
    const cublasStatus_t hdps_status_ = (call);                  \
    CHECK(hdps_status_ == CUBLAS_STATUS_SUCCESS)                 \
        << #call << ": " << cublasGetStatusString(hdps_status_); \
  } while (false)

namespace hdps {
namespace {

// Asks whether the device can run what this build holds.
__global__ void ProbeKernel() {}

// One block: each thread adds every kThreadsABlock-th value, then halves are added to halves.
__global__ void SumOf(const double* values, size_t count, double* sum) {
  __shared__ double sums[kThreadsABlock];
  double own = 0;
  for (size_t i = threadIdx.x; i < count; i += kThreadsABlock) own += values[i];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kThreadsABlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *sum = sums[0];
}

// Factors are rounded by cuBLAS on their way into the product, whose sums are in fp32. kFp32 agrees
// with the CPU's results to the rounding of sums.
cublasComputeType_t ComputeTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return CUBLAS_COMPUTE_32F_PEDANTIC;
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kBf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
  }
  return CUBLAS_COMPUTE_32F_PEDANTIC;
}

// Makes a GPU that of the calling thread.
int Use(int gpu) {
  HDPS_CUDA_CHECK(cudaSetDevice(gpu));
  return gpu;
}

// Invariant: what computes runs on stream_, so it takes effect in the order of the calls, and each
// of them begins with Ready(), behind which all that was uploaded is in its place.
class CudaOps : public DenseOps {
 public:
  CudaOps(const CudaOptions& options, int gpu)
      : gpu_(Use(gpu)),
        precision_(options.precision),
        staging_(stream_, options.executor),
        slabs_(stream_, staging_) {
    HDPS_CUBLAS_CHECK(cublasCreate(&blas_));
    HDPS_CUBLAS_CHECK(cublasSetStream(blas_, stream_));
    // Each product says what it rounds to. No atomics: two runs are bit-identical.
    HDPS_CUBLAS_CHECK(cublasSetMathMode(
        blas_, precision_ == Precision::kFp32 ? CUBLAS_PEDANTIC_MATH : CUBLAS_DEFAULT_MATH));
    HDPS_CUBLAS_CHECK(cublasSetAtomicsMode(blas_, CUBLAS_ATOMICS_NOT_ALLOWED));
  }
  ~CudaOps() override {
    cudaSetDevice(gpu_);
    cudaStreamSynchronize(stream_);
    cublasDestroy(blas_);
  }

  DeviceKind device() const override { return DeviceKind::kCuda; }
  int gpu() const override { return gpu_; }
  std::string Arithmetic() const override {
    return precision_ == Precision::kFp32 ? "cuda" : "cuda " + std::string(WordOf(precision_));
  }

  float* Allocate(size_t floats) override {
    Use(gpu_);
    return CudaAllocate<float>(floats);
  }
  void Free(float* data) override {
    Use(gpu_);
    // Whoever leaves a full device frees what he has there, and must be able to.
    try {
      if (full_.empty()) Ready();
    } catch (const DeviceMemoryFull& full) {
      full_ = full.what();
      staging_.Drop();
    }
    HDPS_CUDA_CHECK(cudaFree(data));
  }
  void Upload(std::span<const float> from, float* to) override {
    Use(gpu_);
    staging_.Upload(from.data(), from.size_bytes(), to);
  }
  void UploadRows(std::span<const float> from, Matrix to) override {
    CHECK_EQ(from.size(), to.rows * to.cols);
    Use(gpu_);
    staging_.UploadRows(from.data(), to.cols * sizeof(float), to.rows, to.data,
                        to.stride * sizeof(float));
  }
  void FetchLater(const float* from, std::span<float> to) override {
    staging_.FetchLater(from, to.size_bytes(), to.data());
  }
  void StartFetches() override {
    Use(gpu_);
    staging_.StartFetches();
  }
  void EndFetches() override { staging_.EndFetches(); }
  void FillZero(float* data, size_t floats) override {
    HDPS_CUDA_CHECK(cudaMemsetAsync(data, 0, floats * sizeof(float), Ready()));
  }
  void Finish() override { HDPS_CUDA_CHECK(cudaStreamSynchronize(Ready())); }
  DeviceTraffic traffic() const override { return staging_.traffic(); }

  void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) override;
  void ActivationBackward(ConstMatrix y, bool relu, Matrix dy, float* bias_gradient) override {
    float* partials = partials_.Reserve((dy.rows + kColumnSumRows - 1) / kColumnSumRows * dy.cols);
    CudaActivationBackward(Ready(), y, relu, dy, partials, bias_gradient);
  }
  void Copy(Write write, ConstMatrix x, Matrix y) override { CudaCopy(Ready(), write, x, y); }
  void RunRows(const RowTask& task) override { CudaRunRows(Ready(), task); }

  void LoadBags(std::span<const Bags> features, uint32_t num_rows,
                std::unique_ptr<BagIndex>* index) override {
    Use(gpu_);
    CudaLoadBags(staging_, features, num_rows, index);
  }
  using DenseOps::Pool;
  using DenseOps::PoolBackward;
  void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
            Matrix out) override {
    CudaPool(Ready(), index, spec, rows.InOnePiece(0, rows.size()), out);
  }
  void PoolBackward(BagIndex& index, const PoolSpec& spec, ConstMatrix gradient, Write write,
                    const RowSpans<float>& row_gradients) override {
    CudaPoolBackward(Ready(), index, spec, gradient, write,
                     row_gradients.InOnePiece(0, row_gradients.size()));
  }

  void Dot(const DotInputs& in, Matrix out) override { CudaDot(Ready(), in, out); }
  void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) override {
    CudaDotBackward(Ready(), in, g, out);
  }

  void Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
            std::span<float> probabilities, double* sum) override;

  void LoadSlots(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded) override {
    Use(gpu_);
    slabs_.Load(slots, loaded);
  }
  void BringOutside(SlabSlots& slots, uint32_t dim, std::span<const float> outside,
                    float* rows) override {
    Use(gpu_);
    slabs_.BringOutside(slots, dim, outside, rows);
  }
  void GatherRows(SlabSlots& slots, const RowSlab& slab, float* rows) override {
    Use(gpu_);
    slabs_.Gather(slots, slab, rows);
  }
  void FetchOutside(SlabSlots& slots, uint32_t dim, const float* rows,
                    std::span<float> to) override {
    Use(gpu_);
    slabs_.FetchOutside(slots, dim, rows, to);
  }
  void UpdateRows(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                  const RowSlab& slab, float* not_finite) override {
    Use(gpu_);
    slabs_.Update(update, slots, gradients, slab, not_finite);
  }
  void FetchRowSquares(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                       const RowSlab& slab, std::span<double> squares, float* not_finite) override {
    Use(gpu_);
    slabs_.FetchSquares(update, slots, gradients, slab, squares, not_finite);
  }
  void ScatterRows(Write write, SlabSlots& slots, const float* rows, float scale,
                   const RowSlab& slab) override {
    Use(gpu_);
    slabs_.Scatter(write, slots, rows, scale, slab);
  }
  void UpdateFirstRows(const RowUpdate& update, size_t count, const float* gradients,
                       const RowSlab& slab) override {
    Use(gpu_);
    slabs_.UpdateFirst(update, count, gradients, slab);
  }
  void ReadSlabs(SlabSlots& slots, std::span<const SlabRows<float>> rows) override {
    Use(gpu_);
    slabs_.ReadRows(slots, rows);
  }
  void WriteSlabs(SlabSlots& slots, std::span<const SlabRows<const float>> rows) override {
    Use(gpu_);
    slabs_.WriteRows(slots, rows);
  }

 private:
  cudaStream_t Ready() {
    if (!full_.empty()) throw DeviceMemoryFull(full_);
    Use(gpu_);
    staging_.Flush();
    return stream_;
  }

  const int gpu_;
  const Precision precision_;
  const CudaStream stream_;
  CudaStaging staging_;
  std::string full_;  // Why nothing more is computed: what was on its way up found no memory.
  cublasHandle_t blas_ = nullptr;
  CudaArray<float> partials_;
  CudaArray<double> losses_;
  CudaRowSlabs slabs_;
};

// cuBLAS counts by columns, so it sees every matrix transposed: c^T = op(b)^T op(a)^T.
void CudaOps::Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (c.rows == 0 || c.cols == 0) return;
  Ready();
  const float one = 1.0f, beta = spec.write == Write::kAdd ? 1.0f : 0.0f;
  if (depth > 0) {
    const auto order_of = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    HDPS_CUBLAS_CHECK(cublasGemmEx(
        blas_, order_of(spec.transpose_b), order_of(spec.transpose_a), static_cast<int>(c.cols),
        static_cast<int>(c.rows), static_cast<int>(depth), &one, b.data, CUDA_R_32F,
        static_cast<int>(b.stride), a.data, CUDA_R_32F, static_cast<int>(a.stride), &beta, c.data,
        CUDA_R_32F, static_cast<int>(c.stride), ComputeTypeOf(precision_), CUBLAS_GEMM_DEFAULT));
  } else if (spec.write == Write::kOver) {
    HDPS_CUDA_CHECK(cudaMemset2DAsync(c.data, c.stride * sizeof(float), 0, c.cols * sizeof(float),
                                      c.rows, stream_));
  }
  CudaAddBiasActivate(stream_, spec.bias, spec.relu, c);
}

void CudaOps::Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
                   std::span<float> probabilities, double* sum) {
  Use(gpu_);
  LossRows task;
  task.kind = input.kind;
  task.logits = logits;
  task.labels = input.labels;
  task.gradient = gradient;
  task.probabilities =
      probabilities.empty() ? nullptr : staging_.Space<float>(probabilities.size());
  task.losses = losses_.Reserve(logits.rows);
  task.weights = input.weights;
  task.positive_weight = input.positive_weight;
  CudaRunRows(Ready(), task);
  auto* const total = staging_.Space<double>(1);
  StartKernel(SumOf, 1, kThreadsABlock, stream_, losses_.data(), logits.rows, total);
  staging_.FetchLater(total, sizeof(double), sum);
  if (!probabilities.empty()) FetchLater(task.probabilities, probabilities);
}

}  // namespace

Result<std::unique_ptr<DenseOps>> NewCudaOps(const CudaOptions& options) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    const char* reason = error != cudaSuccess ? cudaGetErrorString(error) : "it lists none";
    return Status(Code::kNotFound, std::string("no CUDA device found (driver: ") + reason + ")");
  }
  const int gpu = Use(static_cast<int>(options.worker % static_cast<uint32_t>(devices)));
  cudaFuncAttributes attributes;
  const cudaError_t runs = cudaFuncGetAttributes(&attributes, ProbeKernel);
  if (runs != cudaSuccess) {
    cudaGetLastError();  // Forgets it.
    return Status(Code::kNotFound,
                  std::string("the CUDA device cannot run this build's code (driver: ") +
                      cudaGetErrorString(runs) + "); build with its HDPS_CUDA_ARCHITECTURES");
  }
  return std::unique_ptr<DenseOps>(std::make_unique<CudaOps>(options, gpu));
}

}  // namespace hdps
