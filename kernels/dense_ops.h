// The dense arithmetic of one device: the interface that layers are written against, for all
// devices.
#pragma once

#include <glog/logging.h>

#include <cstdint>
#include <functional>
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
#include "kernels/products/field_attention.h"
#include "kernels/products/gemm.h"
#include "kernels/products/target_attention.h"
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

// The bags of a layer's features, in the memory of the device whose ops made it.
class BagIndex {
 public:
  virtual ~BagIndex() = default;
};

// The slab slots of some rows, in the memory of the device whose ops made it. Its owner declares a
// DeviceArray of the ops after it, which is destroyed first, so no copy to it is in flight when it
// ends.
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

// How a layer's pooled features are laid out in its output. Under kConcat feature f of F fills
// columns [f * dim, (f + 1) * dim); under kSum all features add up in [n, dim].
struct PoolSpec {
  Pooling pooling = {};  // kSum
  Combine combine = {};  // kConcat
  uint32_t dim = 0;
};

// The backward of y = x W + b. `dy` [n, units] is the gradient of y after any activation.
struct DenseBackward {
  ConstMatrix x;           // [n, inputs]
  ConstMatrix weights;     // [inputs, units]
  Matrix dy;               // [n, units]; read only.
  Matrix weight_gradient;  // [inputs, units] = x^T dy; not computed without data.
  // [units] = sum of dy over the rows, in their order; not computed if null.
  float* bias_gradient = nullptr;
  Matrix dx;  // [n, inputs] (+)= dy W^T; not computed without data.
  Write write_dx = Write::kOver;
  // x is the output of a ReLU, and dx is the whole gradient of it.
  bool relu_below = false;
};

// Units [first, first + count) of a layer's work; see DenseOps::RunBands().
struct Band {
  size_t index = 0, first = 0, count = 0;
};
class DenseOps;
using BandBody = std::function<void(DenseOps& ops, const Band& band)>;

// The inputs of a loss besides the logits.
struct LossInput {
  LossKind kind = {};  // kLogloss, kSoftmax or kSquared.
  double positive_weight = 1;
  const float* labels = nullptr;   // [n]
  const float* weights = nullptr;  // [n]; null: all are 1.
};

// Copies over the bus between the host and a device.
struct DeviceTraffic {
  uint64_t up_bytes = 0, up_copies = 0;      // Host to device.
  uint64_t down_bytes = 0, down_copies = 0;  // Device to host.
};

// How often a device was given the work of a step as a graph.
struct DeviceGraphs {
  uint64_t launched = 0;            // Graphs of kernels, one call each.
  uint64_t updated = 0, built = 0;  // Launched graphs that reused an earlier one, or did not.
};

// The operations of one device. Pointers and matrices are in the device's memory unless an argument
// is a span (host memory) or says so. Calls of one object come from one thread and take effect in
// their order.
//
// Invariant: results depend only on the arguments and the kind of device, never on the number of
// threads; the shapes fix the order of sums.
class DenseOps {
 public:
  virtual ~DenseOps() = default;
  virtual DeviceKind device() const = 0;
  virtual int gpu() const { return -1; }  // Number of the GPU in this process; -1: none.
  // Returns what the bits of results depend on besides their inputs. Machines with the same text
  // compute the same bits.
  virtual std::string Arithmetic() const = 0;
  // Returns products in bf16; null if the job does not ask for them or the device has none.
  virtual Bf16Ops* bf16() const { return nullptr; }

  // ---- memory.
  //
  // Is true if device memory is host memory, so that spans may be used in place.
  bool on_host() const { return device() == DeviceKind::kCpu; }
  virtual float* Allocate(size_t floats) = 0;
  virtual void Free(float* data) = 0;
  // `from` may be reused at once. Uploads between two computing calls are copied together.
  virtual void Upload(std::span<const float> from, float* to) = 0;
  virtual void UploadRows(std::span<const float> from, Matrix to) = 0;  // from [rows, cols]
  // Copies what is in `from` when StartFetches() is called to `to`, where it is after EndFetches().
  // Other calls may come between the two: a device goes on computing during the copy.
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
  // Waits until all calls so far have been computed.
  virtual void Finish() {}
  // Counts since the ops were made.
  virtual DeviceTraffic traffic() const { return {}; }
  virtual DeviceGraphs graphs() const { return {}; }

  // ---- steps.
  //
  // Mark a step, whose calls are much like those of the last one. A device may collect them and run
  // them as one graph: when a result is waited for, or at the end. Results do not change.
  virtual void BeginStep() {}
  virtual void EndStep() {}

  // ---- scoring.
  //
  // From now on a row of Gemm(), also in RunBands(), and of NewRowProducts() has, or need not have,
  // the same bits beside however many rows: GemmSpec::rows_alike. A GPU gives it no such bits.
  virtual void SetRowsAlike(bool) {}

  // ---- spans of time in which a device copies and computes, to look at their overlap.
  //
  // Begins to record spans, by `clock`, which must outlive the recording.
  virtual void WatchSpans(MonotonicClock&) {}
  // Ends the present computing span, because no call follows for a while.
  virtual void EndSpan() {}
  // Waits for the device, returns the spans since WatchSpans() and ends the recording.
  virtual std::vector<DeviceSpan> TakeSpans() { return {}; }

  // ---- products and elementwise.
  virtual void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) = 0;
  // The backward of y = act(x + bias): turns dy into dx if `relu` (zero where y is not positive),
  // and sets bias_gradient[cols] to the sum of dx over the rows, in their order.
  virtual void ActivationBackward(ConstMatrix y, bool relu, Matrix dy, float* bias_gradient) = 0;
  // The backward of a dense layer. With `relu_below` a device may also turn dx into the gradient
  // before that ReLU (zero where x is not positive); returns true if it did.
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

  // ---- bands: pieces of work that share no result, each a chain of calls on little data.
  //
  // Returns the number of bands that RunBands() cuts `count` units into, such as blocks of
  // examples; at least 1. It depends on `count` and the kind of device alone.
  virtual size_t Bands(size_t) const { return 1; }
  // Calls body(ops, band) for each band, the last of which may be smaller. On the host, bands run
  // at once, each on one thread, so that what a call gives the next stays in the cache. `ops` has
  // Gemm(), Copy() and RunRows(); other arrays must be there already.
  virtual void RunBands(size_t count, const BandBody& body) { body(*this, {0, 0, count}); }

  // ---- embeddings.
  //
  // Loads the bags of a layer's features over a table of `num_rows` rows. `*index` is reused if it
  // is set. The spans of `features` must stay valid until the last use of the index.
  virtual void LoadBags(std::span<const Bags> features, uint32_t num_rows,
                        std::unique_ptr<BagIndex>* index) = 0;
  // Pools rows[num_rows * dim]. On a device other than the host, rows and gradients must be in one
  // piece. Under kMax the index remembers which keys were the largest, for PoolBackward.
  virtual void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
                    Matrix out) = 0;
  // Pools with the result rounded to bf16, for ops with bf16().
  virtual void Pool(BagIndex&, const PoolSpec&, const RowSpans<const float>&, Bf16Matrix) {
    LOG(FATAL) << "this device has no numbers in bf16";
  }
  // For each row: row_gradients[num_rows * dim] (+)= the gradients of its keys, in order of
  // feature, then of bag. Never gives -0.0 under kOver.
  virtual void PoolBackward(BagIndex& index, const PoolSpec& spec, ConstMatrix gradient,
                            Write write, const RowSpans<float>& row_gradients) = 0;
  // Takes a gradient in bf16, which is summed in fp32, for ops with bf16().
  virtual void PoolBackward(BagIndex&, const PoolSpec&, Bf16Matrix, Write, const RowSpans<float>&) {
    LOG(FATAL) << "this device has no numbers in bf16";
  }

  // Returns a dense layer on embeddings that is computed once a distinct row; null if the device
  // has none.
  virtual std::unique_ptr<UniqueRowGemm> NewRowProducts() { return nullptr; }

  // ---- attention.
  //
  // Return attention that is computed in blocks of examples; null if the device has none.
  virtual std::unique_ptr<FieldAttention> NewFieldAttention() { return nullptr; }
  virtual std::unique_ptr<TargetAttention> NewTargetAttention() { return nullptr; }

  // ---- pair dots: see pair_dots.h.
  virtual void Dot(const DotInputs& in, Matrix out) = 0;
  virtual void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) = 0;

  // ---- loss: see LossRows in row_tasks.h.
  //
  // `*sum` (of the losses) and `probabilities` are host memory and valid after EndFetches(), as
  // with FetchLater(). A `gradient` without data and empty `probabilities` are not computed.
  virtual void Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
                    std::span<float> probabilities, double* sum) = 0;

  // ---- rows of a slab: see row_slab.h.
  //
  // Slabs, `rows` and `gradients` are on the device, spans on the host. Some of the n rows are in
  // the slab; the others are "outside". Each function says which of the two it handles. No call
  // waits for the device.

  // Loads the slots of n rows. `slots` [n] must not name a row twice, and must stay valid until the
  // last use. `*loaded` is reused if it is set.
  virtual void LoadSlots(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded) = 0;
  // Copies the rows outside from `outside` [n * dim] to the same places in `rows` [n * dim], where
  // they are valid after GatherRows() of the same rows. On the host, `outside` may be `rows`.
  virtual void BringOutside(SlabSlots& slots, uint32_t dim, std::span<const float> outside,
                            float* rows) = 0;
  // Sets rows [n * dim] to the weights of the rows in the slab.
  virtual void GatherRows(SlabSlots& slots, const RowSlab& slab, float* rows) = 0;
  // Copies the rows outside from `rows` [n * dim] to the same places in `to` [n * dim], valid after
  // EndFetches(); the rest of `to` is unchanged.
  virtual void FetchOutside(SlabSlots& slots, uint32_t dim, const float* rows,
                            std::span<float> to) = 0;
  // Updates the rows in the slab with gradients [n * dim]. If a scaled gradient is not finite, sets
  // *not_finite, on the device, to 1; the slab must not be used any more then.
  virtual void UpdateRows(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                          const RowSlab& slab, float* not_finite) = 0;
  // Fetches squares [n] as in SlabRowSquares(), valid after EndFetches(). `not_finite` as above.
  virtual void FetchRowSquares(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                               const RowSlab& slab, std::span<double> squares,
                               float* not_finite) = 0;
  // Adds rows [n * dim] * scale to the weights of the rows in the slab, or replaces these.
  virtual void ScatterRows(Write write, SlabSlots& slots, const float* rows, float scale,
                           const RowSlab& slab) = 0;
  // Updates the first `count` rows of the slab with gradients [count * dim].
  virtual void UpdateFirstRows(const RowUpdate& update, size_t count, const float* gradients,
                               const RowSlab& slab) = 0;
  // Read or write whole rows, [n * row_floats], of several slabs by the same slots; all n rows are
  // in the slabs. What is read is valid after EndFetches().
  virtual void ReadSlabs(SlabSlots& slots, std::span<const SlabRows<float>> rows) = 0;
  virtual void WriteSlabs(SlabSlots& slots, std::span<const SlabRows<const float>> rows) = 0;
};

struct CudaOptions {
  Executor* executor = nullptr;  // Copies within the host's memory; null: the caller copies.
  uint32_t worker = 0;           // Rank among workers on the machine, which take its GPUs in turns.
  Precision precision = {};      // kFp32. Precision of the operands of products.
};

// Returns ops of the CPU: products are tiles of fixed shape on `executor`, each by single-threaded
// BLAS. `bf16` names what computes products in bf16.
std::unique_ptr<DenseOps> NewCpuOps(Executor& executor, Bf16Products bf16 = Bf16Products::kNone);
// Returns ops of a GPU. kNotFound if the build or the machine has no CUDA; the message says which,
// and the driver's error.
Result<std::unique_ptr<DenseOps>> NewCudaOps(const CudaOptions& options = {});

// Device memory that grows on demand and never shrinks.
class DeviceArray {
 public:
  explicit DeviceArray(DenseOps* ops) : ops_(ops) {}
  ~DeviceArray() { ops_->Free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  // Returns at least `floats` floats; the contents are lost if the array grows.
  float* Reserve(size_t floats) {
    if (floats > size_) {
      size_ = 0;
      ops_->Free(std::exchange(data_, nullptr));
      data_ = ops_->Allocate(floats);
      size_ = floats;
    }
    return data_;
  }
  // Returns a matrix in this array with rows RowStride(cols) apart; contents as above.
  Matrix ReserveRows(size_t rows, size_t cols) {
    return {Reserve(rows * RowStride(cols)), rows, cols, RowStride(cols)};
  }
  // Returns a matrix of bf16 numbers in this array; contents as above.
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
