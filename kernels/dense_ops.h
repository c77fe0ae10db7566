// The dense arithmetic of one device: what layers are written against, once for all devices.
#pragma once

#include <glog/logging.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "kernels/bf16_ops.h"
#include "kernels/device_span.h"
#include "kernels/host/embedding_bag.h"
#include "kernels/host/pair_dots.h"
#include "kernels/host/row_slab.h"
#include "kernels/matrix.h"
#include "kernels/products/gemm.h"
#include "kernels/products/unique_row_gemm.h"
#include "kernels/row_spans.h"
#include "kernels/row_tasks.h"

namespace hdps {

struct RowUpdate;              // kernels/host/slab_update.h
enum class Combine : uint8_t;  // common/job/spec/pooling.h
enum class LossKind : uint8_t;
enum class Pooling : uint8_t;  // pooling.h, too.
enum class Precision : uint8_t;

enum class DeviceKind : uint8_t { kCpu, kCuda };

// The bags of the features of one layer, brought to the device of the ops that made it.
class BagIndex {
 public:
  virtual ~BagIndex() = default;
};

// Which row of a slab each of some rows is, brought to the device of the ops that made it. Whoever
// has it declares a DeviceArray of the ops behind it: at its end nothing is on its way there.
class SlabSlots {
 public:
  virtual ~SlabSlots() = default;
};

// Whole rows of a slab on the host, [n * row_floats].
template <typename Float>
struct SlabRows {
  RowSlab slab;
  std::span<Float> rows;
};

// How the pooled features of a layer stand in its output. Feature f of F fills columns
// [f * dim, (f + 1) * dim) under kConcat; under kSum all features add up in [n, dim].
struct PoolSpec {
  Pooling pooling = {};  // kSum
  Combine combine = {};  // kConcat
  uint32_t dim = 0;
};

// The backward of y = x W + b. `dy` [n, units] is the gradient of y, behind any activation.
struct DenseBackward {
  ConstMatrix x;                   // [n, inputs]
  ConstMatrix weights;             // [inputs, units]
  Matrix dy;                       // Only read.
  Matrix weight_gradient;          // [inputs, units] = x^T dy; without data: not.
  float* bias_gradient = nullptr;  // [units] = sum of dy over the rows, in their order; null: not.
  Matrix dx;                       // [n, inputs] (+)= dy W^T; without data: not.
  Write write_dx = Write::kOver;
  // x is what a ReLU gave, and dx is all of its gradient.
  bool relu_below = false;
};

// What a loss has beside the logits.
struct LossInput {
  LossKind kind = {};  // kLogloss, kSoftmax or kSquared.
  double positive_weight = 1;
  const float* labels = nullptr;   // [n]
  const float* weights = nullptr;  // [n]; null: all are 1.
};

// What has crossed the bus between the host and a device.
struct DeviceTraffic {
  uint64_t up_bytes = 0, up_copies = 0;      // To the device.
  uint64_t down_bytes = 0, down_copies = 0;  // From it.
};

// How often a device was handed the work of a step as a whole.
struct DeviceGraphs {
  uint64_t launched = 0;            // Graphs of kernels, by one call each.
  uint64_t updated = 0, built = 0;  // Of these: like one before, or not.
};

// Pointers and matrices are in the device's memory unless an argument is a span (host memory) or
// says so. Calls of one object come from one thread and take effect in their order.
//
// Invariant: results depend on the arguments and the kind of device alone, never on the number of
// threads; sums run in an order that is fixed by the shapes.
class DenseOps {
 public:
  virtual ~DenseOps() = default;
  virtual DeviceKind device() const = 0;
  virtual int gpu() const { return -1; }  // Its number in this process; -1: it is none.
  // What the bits of results depend on beside their inputs. Two machines with the same text compute
  // the same bits.
  virtual std::string Arithmetic() const = 0;
  // Products of numbers in bf16; null: the job does not ask for them, or the device has none.
  virtual Bf16Ops* bf16() const { return nullptr; }

  // ---- memory.
  //
  // Device memory is host memory: spans may be used in place.
  bool on_host() const { return device() == DeviceKind::kCpu; }
  virtual float* Allocate(size_t floats) = 0;
  virtual void Free(float* data) = 0;
  // `from` may be reused at once. What is uploaded between two calls that compute travels together.
  virtual void Upload(std::span<const float> from, float* to) = 0;
  virtual void UploadRows(std::span<const float> from, Matrix to) = 0;  // from [rows, cols]
  // What stands in `from` when StartFetches() is called is in `to` behind EndFetches(). Other calls
  // may come between the two: a device goes on computing while it travels.
  virtual void FetchLater(const float* from, std::span<float> to) = 0;
  virtual void StartFetches() {}
  virtual void EndFetches() {}
  void Fetch() {
    StartFetches();
    EndFetches();
  }
  void Download(const float* from, std::span<float> to) {
    FetchLater(from, to);
    Fetch();
  }
  virtual void FillZero(float* data, size_t floats) = 0;
  // Waits until all that was called has been computed.
  virtual void Finish() {}
  // Since it was made.
  virtual DeviceTraffic traffic() const { return {}; }
  virtual DeviceGraphs graphs() const { return {}; }

  // ---- steps.
  //
  // What is called between the two is much like what was called between the last two, so a device
  // may be handed it as a whole: where somebody waits for it, or at the end. Changes no result.
  virtual void BeginStep() {}
  virtual void EndStep() {}

  // ---- when a device copies and computes, for people who look at what overlaps.
  //
  // From here on; `clock`, which outlives the watch, is the one that spans are given in.
  virtual void WatchSpans(MonotonicClock&) {}
  // Nothing more is called for a while: what is computed now is the end of a span.
  virtual void EndSpan() {}
  // Waits for the device; the spans since WatchSpans(). Ends the watch.
  virtual std::vector<DeviceSpan> TakeSpans() { return {}; }

  // ---- products and elementwise.
  virtual void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) = 0;
  // Backward of y = act(x + bias): dy becomes dx where `relu` (zero where y is not positive);
  // bias_gradient[cols] = sum of dx over the rows, in order of row.
  virtual void ActivationBackward(ConstMatrix y, bool relu, Matrix dy, float* bias_gradient) = 0;
  // With `relu_below` a device may also turn dx into the gradient in front of that ReLU (zero where
  // x is not positive); true when it has.
  virtual bool BackwardOfDense(const DenseBackward& layer) {
    if (layer.bias_gradient != nullptr) {
      ActivationBackward({}, false, layer.dy, layer.bias_gradient);
    }
    if (layer.weight_gradient.data != nullptr) {
      Gemm({.transpose_a = true}, layer.x, layer.dy, layer.weight_gradient);
    }
    if (layer.dx.data != nullptr) {
      Gemm({.transpose_b = true, .write = layer.write_dx}, layer.dy, layer.weights, layer.dx);
    }
    return false;
  }
  virtual void Copy(Write write, ConstMatrix x, Matrix y) = 0;  // y (+)= x
  virtual void RunRows(const RowTask& task) = 0;                // See row_tasks.h.

  // ---- embeddings.
  //
  // Describes the bags of a layer's features over a table of `num_rows` rows. `*index` is reused
  // when it holds one; the spans of `features` must stay until the last use of it.
  virtual void LoadBags(std::span<const Bags> features, uint32_t num_rows,
                        std::unique_ptr<BagIndex>* index) = 0;
  // rows[num_rows * dim] and gradients are in one piece where the device is not the host. Under
  // kMax the index remembers which keys were the largest, for PoolBackward.
  virtual void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
                    Matrix out) = 0;
  // The same rounded to bf16, where there is bf16().
  virtual void Pool(BagIndex&, const PoolSpec&, const RowSpans<const float>&, Bf16Matrix) {
    LOG(FATAL) << "this device has no numbers in bf16";
  }
  // row_gradients[num_rows * dim] (+)= for each row the gradients of its keys, in order of feature,
  // then of bag; a GPU adds up parts of a row with many keys first. Never gives -0.0 under kOver.
  virtual void PoolBackward(BagIndex& index, const PoolSpec& spec, ConstMatrix gradient,
                            Write write, const RowSpans<float>& row_gradients) = 0;
  // The same of a gradient in bf16, added up in fp32, where there is bf16().
  virtual void PoolBackward(BagIndex&, const PoolSpec&, Bf16Matrix, Write, const RowSpans<float>&) {
    LOG(FATAL) << "this device has no numbers in bf16";
  }

  // A dense layer on embeddings, computed once a distinct row; null where the device has none.
  virtual std::unique_ptr<UniqueRowGemm> NewRowProducts() { return nullptr; }

  // ---- pair dots: see pair_dots.h.
  virtual void Dot(const DotInputs& in, Matrix out) = 0;
  virtual void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) = 0;

  // ---- loss: see LossRows in row_tasks.h.
  //
  // `*sum`, of the losses, and `probabilities`, both of the host, stand behind EndFetches(), as
  // what FetchLater() asks for. `gradient` without data and an empty `probabilities` are left out.
  virtual void Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
                    std::span<float> probabilities, double* sum) = 0;

  // ---- rows of a slab: see row_slab.h.
  //
  // Slabs, `rows` and `gradients` are on the device, spans on the host. What is said of row i of n
  // holds for those in the slab; the others are `outside`. No call waits for the device.

  // `slots` [n] name no row twice and must stay until the last use. `*loaded` is reused when it
  // holds some.
  virtual void LoadSlots(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded) = 0;
  // The rows outside from their places in `outside` [n * dim] to those in `rows` [n * dim], where
  // they stand behind GatherRows() of the same rows. `outside` may be `rows` on the host.
  virtual void BringOutside(SlabSlots& slots, uint32_t dim, std::span<const float> outside,
                            float* rows) = 0;
  // rows [n * dim] = the weights of those in the slab.
  virtual void GatherRows(SlabSlots& slots, const RowSlab& slab, float* rows) = 0;
  // The rows outside from `rows` [n * dim] to their places in `to` [n * dim], where they stand
  // behind EndFetches(); the rest of it stays.
  virtual void FetchOutside(SlabSlots& slots, uint32_t dim, const float* rows,
                            std::span<float> to) = 0;
  // gradients [n * dim]. Where one, scaled, is not a finite number, *not_finite, on the device,
  // becomes 1 and the slab is of no more use.
  virtual void UpdateRows(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                          const RowSlab& slab, float* not_finite) = 0;
  // squares [n], as SlabRowSquares() has them, stand behind EndFetches(). Likewise.
  virtual void FetchRowSquares(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                               const RowSlab& slab, std::span<double> squares,
                               float* not_finite) = 0;
  // The weights of those in the slab (+)= rows [n * dim] * scale.
  virtual void ScatterRows(Write write, SlabSlots& slots, const float* rows, float scale,
                           const RowSlab& slab) = 0;
  // The first `count` rows of the slab, all of them, with gradients [count * dim].
  virtual void UpdateFirstRows(const RowUpdate& update, size_t count, const float* gradients,
                               const RowSlab& slab) = 0;
  // Whole rows, [n * row_floats], of several slabs by the same slots, all in the slabs. What is
  // read stands in its place behind EndFetches().
  virtual void ReadSlabs(SlabSlots& slots, std::span<const SlabRows<float>> rows) = 0;
  virtual void WriteSlabs(SlabSlots& slots, std::span<const SlabRows<const float>> rows) = 0;
};

struct CudaOptions {
  Executor* executor = nullptr;  // Copies within the host's memory; null: the caller does.
  uint32_t worker = 0;           // Among those that share the machine: they take its GPUs in turns.
  Precision precision = {};      // kFp32. Of what is multiplied in products.
};

// Tiles of fixed shape on `executor`, products by single-threaded BLAS.
// Products in bf16 where `bf16` names what computes them.
std::unique_ptr<DenseOps> NewCpuOps(Executor& executor, Bf16Products bf16 = Bf16Products::kNone);
// kNotFound when the build or the machine has no CUDA; the message says which, and what the driver
// said.
Result<std::unique_ptr<DenseOps>> NewCudaOps(const CudaOptions& options = {});

// Device memory that grows on demand and never shrinks.
class DeviceArray {
 public:
  explicit DeviceArray(DenseOps* ops) : ops_(ops) {}
  ~DeviceArray() { ops_->Free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  // At least `floats` floats; what they held is lost when the array grows.
  float* Reserve(size_t floats) {
    if (floats > size_) {
      size_ = 0;
      ops_->Free(std::exchange(data_, nullptr));
      data_ = ops_->Allocate(floats);
      size_ = floats;
    }
    return data_;
  }
  // A matrix of this array, its rows RowStride(cols) apart; likewise.
  Matrix ReserveRows(size_t rows, size_t cols) {
    return {Reserve(rows * RowStride(cols)), rows, cols, RowStride(cols)};
  }
  // Numbers in bf16 in the array's memory; likewise.
  Bf16Matrix ReserveBf16Rows(size_t rows, size_t cols) {
    const size_t stride = Bf16RowStride(cols);
    return {reinterpret_cast<uint16_t*>(Reserve((rows * stride + 1) / 2)), rows, cols, stride};
  }
  float* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  DenseOps* ops_;
  float* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
