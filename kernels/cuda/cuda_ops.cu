// Dense operations on the GPU: products by cuBLASLt, the rest by our kernels, all on one stream.
#include <memory>
#include <string>

#include "common/base/enum_words.h"
#include "common/job/spec/precision.h"
#include "kernels/cuda/cublas_library.h"
#include "kernels/cuda/cuda_bf16_ops.cuh"
#include "kernels/cuda/cuda_capture.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/cuda_products.cuh"
#include "kernels/cuda/cuda_row_slab.cuh"
#include "kernels/cuda/cuda_staging.cuh"
#include "kernels/host/slab_update.h"

namespace hdps {
namespace {

// Tests whether the device can run the code in this build.
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

// Makes a GPU the calling thread's device; returns its number.
int Use(int gpu) {
  HDPS_CUDA_CHECK(cudaSetDevice(gpu));
  return gpu;
}

// Invariant: computing calls run on stream_ and so take effect in order; each begins with Ready(),
// after which all uploads are in place.
class CudaOps : public DenseOps {
 public:
  CudaOps(const CudaOptions& options, int gpu)
      : gpu_(Use(gpu)),
        precision_(options.precision),
        capture_(stream_, &timeline_),
        staging_(stream_, capture_, options.executor, timeline_),
        products_(stream_, capture_, precision_),
        slabs_(stream_, staging_) {
    if (precision_ != Precision::kBf16) return;
    bf16_ = std::make_unique<CudaBf16Ops>([this] { return Ready(); }, products_, capture_);
  }
  ~CudaOps() override {
    cudaSetDevice(gpu_);
    cudaStreamSynchronize(stream_);
  }

  DeviceKind device() const override { return DeviceKind::kCuda; }
  int gpu() const override { return gpu_; }
  std::string Arithmetic() const override {
    return precision_ == Precision::kFp32 ? "cuda" : "cuda " + std::string(WordOf(precision_));
  }

  Bf16Ops* bf16() const override { return bf16_.get(); }

  float* Allocate(size_t floats) override {
    Use(gpu_);
    capture_.Pause();
    return CudaAllocate<float>(floats);
  }
  void Free(float* data) override {
    Use(gpu_);
    // A caller that leaves because the device is full still frees its memory, which must work.
    try {
      if (full_.empty()) Ready();
      capture_.Pause();
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
  void Finish() override {
    Ready();
    EndSpan();
    HDPS_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }
  DeviceTraffic traffic() const override { return staging_.traffic(); }
  DeviceGraphs graphs() const override { return capture_.counts(); }
  void BeginStep() override {
    Use(gpu_);
    capture_.BeginStep();
  }
  void EndStep() override {
    Use(gpu_);
    capture_.EndStep();
  }
  void WatchSpans(MonotonicClock& clock) override {
    Use(gpu_);
    capture_.Launch();
    timeline_.Watch(clock, stream_);
  }
  void EndSpan() override {
    Use(gpu_);
    capture_.Launch();
    timeline_.End(DeviceSpan::Kind::kCompute, stream_);
  }
  std::vector<DeviceSpan> TakeSpans() override {
    EndSpan();
    return timeline_.Take();
  }

  void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) override;
  void ActivationBackward(ConstMatrix y, bool relu, Matrix dy, float* bias_gradient) override {
    float* partials = partials_.Reserve((dy.rows + kColumnSumRows - 1) / kColumnSumRows * dy.cols);
    CudaActivationBackward(Ready(), y, relu, dy, partials, bias_gradient);
  }
  bool BackwardOfDense(const DenseBackward& layer) override;
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
  void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
            Bf16Matrix out) override {
    CudaPool(Ready(), index, spec, rows.InOnePiece(0, rows.size()), out);
  }
  void PoolBackward(BagIndex& index, const PoolSpec& spec, ConstMatrix gradient, Write write,
                    const RowSpans<float>& row_gradients) override {
    CudaPoolBackward(Ready(), index, spec, gradient, write,
                     row_gradients.InOnePiece(0, row_gradients.size()));
  }
  void PoolBackward(BagIndex& index, const PoolSpec& spec, Bf16Matrix gradient, Write write,
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
  CudaTimeline timeline_;
  CudaCapture capture_;
  CudaStaging staging_;
  std::string full_;  // Why nothing more is computed: an upload found no memory.
  CudaProducts products_;
  CudaArray<float> partials_{capture_};
  CudaArray<double> losses_{capture_};
  CudaRowSlabs slabs_;
  std::unique_ptr<CudaBf16Ops> bf16_;  // Null: the job does not ask for them.
};

// Computes bias and activation in the kernel of the product if the library has one for it.
void CudaOps::Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  if (c.rows == 0 || c.cols == 0) return;
  CudaProduct product{spec.transpose_a, spec.transpose_b, spec.write, a, b, c};
  CudaProduct whole = product;
  whole.bias = spec.bias;
  whole.relu = spec.relu;
  Ready();
  if (products_.Run(whole)) return;
  if (product.depth() > 0) {
    products_.Run(product);
  } else if (spec.write == Write::kOver) {
    HDPS_CUDA_CHECK(cudaMemset2DAsync(c.data, c.stride * sizeof(float), 0, c.cols * sizeof(float),
                                      c.rows, stream_));
  }
  CudaAddBiasActivate(stream_, spec.bias, spec.relu, c);
}

// The bias gradient is summed in the product that reads dy anyway, and dx is masked as it is
// written, by a bit an element. Separate passes over dy and dx, which move 12 bytes an element
// each, would cost as much as the products of narrow layers.
bool CudaOps::BackwardOfDense(const DenseBackward& layer) {
  Ready();
  const bool wants_weights = layer.weight_gradient.data != nullptr;
  bool with_sums = false;
  if (wants_weights && layer.bias_gradient != nullptr) {
    CudaProduct product{true, false, Write::kOver, layer.x, layer.dy, layer.weight_gradient};
    product.sums_of_b = layer.bias_gradient;
    with_sums = products_.Run(product);
  }
  if (!with_sums && layer.bias_gradient != nullptr) {
    ActivationBackward({}, false, layer.dy, layer.bias_gradient);
  }
  if (!with_sums && wants_weights) {
    Gemm({.transpose_a = true}, layer.x, layer.dy, layer.weight_gradient);
  }
  if (layer.dx.data == nullptr) return false;
  Gemm({.transpose_b = true, .write = layer.write_dx}, layer.dy, layer.weights, layer.dx);
  if (layer.relu_below) CudaMask(Ready(), layer.x, layer.dx);
  return layer.relu_below;
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
    cudaGetLastError();  // Clears the error.
    return Status(Code::kNotFound,
                  std::string("the CUDA device cannot run this build's code (driver: ") +
                      cudaGetErrorString(runs) + "); build with its HDPS_CUDA_ARCHITECTURES");
  }
  HDPS_RETURN_IF_ERROR(CublasStatus());
  return std::unique_ptr<DenseOps>(std::make_unique<CudaOps>(options, gpu));
}

}  // namespace hdps
