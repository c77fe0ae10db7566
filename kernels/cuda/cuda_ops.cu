// Dense operations on the GPU: products by cuBLAS, the rest by our kernels, all on one stream.
#include <cublas_v2.h>

#include <string>
#include <vector>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"
#include "kernels/cuda/cuda_row_slab.cuh"

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

// Invariant: everything runs on stream_, so it takes effect in the order of the calls; what is
// given back to the host has been waited for.
class CudaOps : public DenseOps {
 public:
  CudaOps() {
    HDPS_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    HDPS_CUBLAS_CHECK(cublasCreate(&blas_));
    HDPS_CUBLAS_CHECK(cublasSetStream(blas_, stream_));
    // No TF32: results agree with the CPU's to rounding. No atomics: two runs are bit-identical.
    HDPS_CUBLAS_CHECK(cublasSetMathMode(blas_, CUBLAS_PEDANTIC_MATH));
    HDPS_CUBLAS_CHECK(cublasSetAtomicsMode(blas_, CUBLAS_ATOMICS_NOT_ALLOWED));
  }
  ~CudaOps() override {
    cublasDestroy(blas_);
    cudaStreamDestroy(stream_);
  }

  DeviceKind device() const override { return DeviceKind::kCuda; }
  std::string Arithmetic() const override { return "cuda"; }

  float* Allocate(size_t floats) override {
    float* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, floats * sizeof(float));
    CHECK(error == cudaSuccess) << "allocating " << floats * sizeof(float)
                                << " bytes on the GPU: " << cudaGetErrorString(error)
                                << "; a smaller train.batch_size or device=cpu would do";
    return data;
  }
  void Free(float* data) override { HDPS_CUDA_CHECK(cudaFree(data)); }
  void Upload(std::span<const float> from, float* to) override {
    if (from.empty()) return;
    HDPS_CUDA_CHECK(
        cudaMemcpyAsync(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream_));
  }
  void UploadRows(std::span<const float> from, Matrix to) override {
    CHECK_EQ(from.size(), to.rows * to.cols);
    if (from.empty()) return;
    const size_t row_bytes = to.cols * sizeof(float);
    HDPS_CUDA_CHECK(cudaMemcpy2DAsync(to.data, to.stride * sizeof(float), from.data(), row_bytes,
                                      row_bytes, to.rows, cudaMemcpyHostToDevice, stream_));
  }
  void Download(const float* from, std::span<float> to) override {
    if (to.empty()) return;
    HDPS_CUDA_CHECK(
        cudaMemcpyAsync(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost, stream_));
    HDPS_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }
  void FillZero(float* data, size_t floats) override {
    HDPS_CUDA_CHECK(cudaMemsetAsync(data, 0, floats * sizeof(float), stream_));
  }

  void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) override;
  void ActivationBackward(ConstMatrix y, bool relu, Matrix dy, float* bias_gradient) override {
    float* partials = partials_.Reserve((dy.rows + kColumnSumRows - 1) / kColumnSumRows * dy.cols);
    CudaActivationBackward(stream_, y, relu, dy, partials, bias_gradient);
  }
  void Copy(Write write, ConstMatrix x, Matrix y) override { CudaCopy(stream_, write, x, y); }
  void RunRows(const RowTask& task) override { CudaRunRows(stream_, task); }

  void LoadBags(std::span<const Bags> features, uint32_t num_rows,
                std::unique_ptr<BagIndex>* index) override {
    CudaLoadBags(stream_, features, num_rows, index);
  }
  using DenseOps::Pool;
  using DenseOps::PoolBackward;
  void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
            Matrix out) override {
    CudaPool(stream_, index, spec, rows.InOnePiece(0, rows.size()), out);
  }
  void PoolBackward(const BagIndex& index, const PoolSpec& spec, ConstMatrix gradient, Write write,
                    const RowSpans<float>& row_gradients) override {
    CudaPoolBackward(stream_, index, spec, gradient, write,
                     row_gradients.InOnePiece(0, row_gradients.size()));
  }

  void Dot(const DotInputs& in, Matrix out) override { CudaDot(stream_, in, out); }
  void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) override {
    CudaDotBackward(stream_, in, g, out);
  }

  using DenseOps::Loss;
  double Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
              std::span<float> probabilities) override;

  void GatherRows(const RowSlab& slab, std::span<const uint32_t> slots,
                  std::span<const float> outside, float* rows) override {
    slabs_.Gather(stream_, slab, slots, outside, rows);
  }
  void DownloadOutside(std::span<const uint32_t> slots, uint32_t dim, const float* rows,
                       std::span<float> to) override {
    slabs_.DownloadOutside(stream_, slots, dim, rows, to);
  }
  bool UpdateRows(const RowUpdate& update, std::span<const uint32_t> slots, const float* gradients,
                  const RowSlab& slab) override {
    return slabs_.Update(stream_, update, slots, gradients, slab);
  }
  void ReadSlab(const RowSlab& slab, std::span<const uint32_t> slots,
                std::span<float> to) override {
    slabs_.Read(stream_, slab, slots, to);
  }
  void WriteSlab(std::span<const float> from, std::span<const uint32_t> slots,
                 const RowSlab& slab) override {
    slabs_.Write(stream_, from, slots, slab);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  CudaArray<float> partials_, labels_, weights_, probabilities_;
  CudaArray<double> losses_;
  CudaRowSlabs slabs_;
  std::vector<double> host_losses_;
};

// cuBLAS counts by columns, so it sees every matrix transposed: c^T = op(b)^T op(a)^T.
void CudaOps::Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (c.rows == 0 || c.cols == 0) return;
  const float one = 1.0f, beta = spec.write == Write::kAdd ? 1.0f : 0.0f;
  if (depth > 0) {
    const auto order_of = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    HDPS_CUBLAS_CHECK(cublasSgemm(
        blas_, order_of(spec.transpose_b), order_of(spec.transpose_a), static_cast<int>(c.cols),
        static_cast<int>(c.rows), static_cast<int>(depth), &one, b.data, static_cast<int>(b.stride),
        a.data, static_cast<int>(a.stride), &beta, c.data, static_cast<int>(c.stride)));
  } else if (spec.write == Write::kOver) {
    HDPS_CUDA_CHECK(cudaMemset2DAsync(c.data, c.stride * sizeof(float), 0, c.cols * sizeof(float),
                                      c.rows, stream_));
  }
  CudaAddBiasActivate(stream_, spec.bias, spec.relu, c);
}

double CudaOps::Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
                     std::span<float> probabilities) {
  CHECK_EQ(input.labels.size(), logits.rows);
  labels_.Upload(input.labels.data(), input.labels.size(), stream_);
  if (!input.weights.empty()) {
    CHECK_EQ(input.weights.size(), logits.rows);
    weights_.Upload(input.weights.data(), input.weights.size(), stream_);
  }
  float* device_probabilities =
      probabilities.empty() ? nullptr : probabilities_.Reserve(probabilities.size());
  LossRows task;
  task.kind = input.kind;
  task.logits = logits;
  task.labels = labels_.data();
  task.gradient = gradient;
  task.probabilities = device_probabilities;
  task.losses = losses_.Reserve(logits.rows);
  task.weights = input.weights.empty() ? nullptr : weights_.data();
  task.positive_weight = input.positive_weight;
  CudaRunRows(stream_, task);
  host_losses_.resize(logits.rows);
  if (logits.rows > 0) {
    HDPS_CUDA_CHECK(cudaMemcpyAsync(host_losses_.data(), losses_.data(),
                                    logits.rows * sizeof(double), cudaMemcpyDeviceToHost, stream_));
    HDPS_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }
  if (!probabilities.empty()) Download(device_probabilities, probabilities);
  double sum = 0;
  for (const double loss : host_losses_) sum += loss;
  return sum;
}

}  // namespace

Result<std::unique_ptr<DenseOps>> NewCudaOps() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    const char* reason = error != cudaSuccess ? cudaGetErrorString(error) : "it lists none";
    return Status(Code::kNotFound, std::string("no CUDA device found (driver: ") + reason + ")");
  }
  cudaFuncAttributes attributes;
  const cudaError_t runs = cudaFuncGetAttributes(&attributes, ProbeKernel);
  if (runs != cudaSuccess) {
    cudaGetLastError();  // Forgets it.
    return Status(Code::kNotFound,
                  std::string("the CUDA device cannot run this build's code (driver: ") +
                      cudaGetErrorString(runs) + "); build with its HDPS_CUDA_ARCHITECTURES");
  }
  return std::unique_ptr<DenseOps>(std::make_unique<CudaOps>());
}

}  // namespace hdps
