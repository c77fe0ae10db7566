// A block of a transformer over a sequence (Vaswani et al. 2017): attention, then an MLP, each
// added to what it reads and normalized.
#include <array>
#include <cmath>
#include <deque>

#include "common/job/activation.h"
#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"
#include "worker/model/sequence_lengths.h"

namespace hdps {
namespace {

// Added to the variance of a vector, as layer_norm does by default.
constexpr float kEpsilon = 1e-5f;

// Computes part 0, attention, and part 1, the MLP: sum = x + F(x) and y = normalized sum, or y = x
// + F(normalized x). Arrays have no gaps, and vector f of example i is row i * vectors_ + f.
//
// Invariant: vectors behind the last of an example are 0 in the output, and have no part in any
// gradient. In between they have values, which nothing else reads.
class TransformerLayer : public Layer {
 public:
  explicit TransformerLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.self().vector_dim),
        units_(site.spec.units),
        vectors_(site.self().width / dim_),
        heads_(static_cast<uint32_t>(site.Number("heads"))),
        activation_(site.spec.activation),
        earlier_(site.Word("sees") == "earlier"),
        before_(site.Word("norm") == "before"),
        lengths_(site) {
    for (size_t i = 0; i < kTensors; ++i) tensors_[i] = site.TensorAt(i);
    for (size_t i = 0; i < kArrays; ++i) arrays_.emplace_back(&site.ops);
  }

  void Bring(Pass& pass) override { lengths_.Bring(pass); }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    rows_ = self.value.rows * vectors_;
    pass.ops.Copy(Write::kOver, pass.places[self.inputs[0]].value, Wide(Vectors(kInput)));
    for (const size_t part : {0, 1}) {
      const Matrix sum = Vectors(kSum + part);
      if (before_) Normalize(pass, part, Read(part));
      pass.ops.Copy(Write::kOver, Read(part), sum);
      if (part == 0) {
        Attend(pass, sum);
      } else {
        RunMlp(pass, sum);
      }
      if (!before_) Normalize(pass, part, sum);
    }
    pass.ops.RunRows(MaskRows{lengths_.counts(), Wide(Given(1)), self.value, dim_});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    // The gradient of what a part gives, and then of what it reads; that of what F reads.
    const Matrix outer = Vectors(kOuterGradient), inner = Vectors(kInnerGradient);
    pass.ops.RunRows(MaskRows{lengths_.counts(), self.gradient, Wide(outer), dim_});
    for (const size_t part : {1, 0}) {
      if (!before_) NormalizeBackward(pass, part, outer, Write::kOver, outer);
      if (part == 0) {
        AttendBackward(pass, outer, inner);
      } else {
        MlpBackward(pass, outer, inner);
      }
      if (before_) {
        NormalizeBackward(pass, part, inner, Write::kAdd, outer);
      } else {
        pass.ops.Copy(Write::kAdd, inner, outer);
      }
    }
    Place& input = pass.places[self.inputs[0]];
    pass.ops.Copy(input.NextGradient(), Wide(outer), input.gradient);
  }

 private:
  // Tensors in the order of the record; the last two pairs are gain and shift of each part.
  enum Tensor : size_t {
    kQuery,
    kKey,
    kValue,
    kOutput,
    kHidden,
    kWeight,
    kHiddenBias,
    kBias,
    kGain
  };
  static constexpr size_t kTensors = kGain + 4, kProjections = 3;
  // Arrays of vectors of dim_ columns, but for kProduct, kActive and kActiveGradient, which have
  // units_, and kWeights, kScoreGradients and kScales.
  enum Array : size_t {
    kInput,
    kSum,  // One a part, like the next three.
    kNormalized = kSum + 2,
    kNormal = kNormalized + 2,  // Before gain and shift.
    kScales = kNormal + 2,      // [rows_]
    kQueries = kScales + 2,
    kKeys,
    kValues,
    kQueryGradients,
    kKeyGradients,
    kValueGradients,
    kAttended,
    kAttendedGradient,
    kWeights,         // [n, heads * vectors * vectors]
    kScoreGradients,  // The same.
    kProduct,         // The hidden layer of the MLP before its activation.
    kActive,          // And behind it.
    kActiveGradient,
    kOuterGradient,
    kInnerGradient,
    kArrays
  };

  // ---- normalization of part 0 or 1.

  void Normalize(Pass& pass, size_t part, ConstMatrix x) {
    NormalizeRows task;
    task.epsilon = kEpsilon;
    task.gain = pass.dense + tensors_[kGain + 2 * part];
    task.bias = pass.dense + tensors_[kGain + 2 * part + 1];
    task.x = x;
    task.normal = Vectors(kNormal + part);
    task.y = Vectors(kNormalized + part);
    task.scales = arrays_[kScales + part].Reserve(rows_);
    pass.ops.RunRows(task);
  }

  // dx (+)= the gradient of what was normalized; dx may be dy.
  void NormalizeBackward(Pass& pass, size_t part, Matrix dy, Write write, Matrix dx) {
    // These sum columns in the order of the rows.
    pass.ops.ActivationBackward({}, false, dy,
                                pass.dense_gradients + tensors_[kGain + 2 * part + 1]);
    NormalizeRowsBackward task;
    task.gain = pass.dense + tensors_[kGain + 2 * part];
    task.scales = arrays_[kScales + part].data();
    task.dy = dy;
    task.write_dx = write;
    task.dx = dx;
    task.normal = Vectors(kNormal + part);
    pass.ops.RunRows(task);
    pass.ops.ActivationBackward({}, false, task.normal,
                                pass.dense_gradients + tensors_[kGain + 2 * part]);
  }

  // ---- part 0.

  // Adds what each vector attends to.
  void Attend(Pass& pass, Matrix sum) {
    for (size_t i = 0; i < kProjections; ++i) {
      pass.ops.Gemm({}, Inner(0), Weights(pass.dense, kQuery + i), Vectors(kQueries + i));
    }
    AttendFields task;
    SetShape(&task);
    task.counts = lengths_.counts();
    task.causal = earlier_;
    task.queries = arrays_[kQueries].data();
    task.keys = arrays_[kKeys].data();
    task.values = arrays_[kValues].data();
    task.weights = Scores(kWeights);
    task.y = Wide(Vectors(kAttended));
    pass.ops.RunRows(task);
    pass.ops.Gemm({.write = Write::kAdd}, Vectors(kAttended), Weights(pass.dense, kOutput), sum);
  }

  void AttendBackward(Pass& pass, Matrix dy, Matrix dx) {
    const Matrix attended = Vectors(kAttendedGradient);
    BackwardOfProduct(pass, kOutput, Vectors(kAttended), dy, Write::kOver, attended);
    for (size_t i = 0; i < kProjections; ++i) Vectors(kQueryGradients + i);
    AttendFieldsBackward queries;
    SetShape(&queries);
    queries.keys = arrays_[kKeys].data();
    queries.values = arrays_[kValues].data();
    queries.weights = Scores(kWeights);
    queries.dscores = Scores(kScoreGradients);
    queries.dqueries = arrays_[kQueryGradients].data();
    queries.dresiduals = attended.data;
    pass.ops.RunRows(queries);
    AttendedFieldsBackward keys;
    keys.fields = vectors_;
    keys.heads = heads_;
    keys.head_dim = dim_ / heads_;
    keys.queries = arrays_[kQueries].data();
    keys.dresiduals = attended.data;
    keys.weights = queries.weights;
    keys.dscores = queries.dscores;
    keys.dkeys = arrays_[kKeyGradients].data();
    keys.dvalues = arrays_[kValueGradients].data();
    pass.ops.RunRows(keys);
    for (size_t i = 0; i < kProjections; ++i) {
      BackwardOfProduct(pass, kQuery + i, Inner(0), Vectors(kQueryGradients + i),
                        i == 0 ? Write::kOver : Write::kAdd, dx);
    }
  }

  // ---- part 1.

  void RunMlp(Pass& pass, Matrix sum) {
    const Matrix product = Hidden(kProduct), active = Hidden(kActive);
    pass.ops.Gemm({.bias = pass.dense + tensors_[kHiddenBias]}, Inner(1),
                  Weights(pass.dense, kHidden), product);
    pass.ops.RunRows(Activate{activation_, product, active});
    pass.ops.Gemm({.write = Write::kAdd, .bias = pass.dense + tensors_[kBias]}, active,
                  Weights(pass.dense, kWeight), sum);
  }

  void MlpBackward(Pass& pass, Matrix dy, Matrix dx) {
    const Matrix active = Hidden(kActiveGradient);
    BackwardOfProduct(pass, kWeight, Hidden(kActive), dy, Write::kOver, active);
    pass.ops.RunRows(ActivateBackward{activation_, Hidden(kProduct), active});
    BackwardOfProduct(pass, kHidden, Inner(1), active, Write::kOver, dx);
  }

  // ---- matrices.

  // Computes the gradients of x W (+ b) for the matrix `tensor` and the bias that it may have.
  void BackwardOfProduct(Pass& pass, size_t tensor, ConstMatrix x, Matrix dy, Write write,
                         Matrix dx) {
    DenseBackward layer;
    layer.x = x;
    layer.weights = Weights(pass.dense, tensor);
    layer.dy = dy;
    layer.weight_gradient = {pass.dense_gradients + tensors_[tensor], layer.weights.rows,
                             layer.weights.cols, layer.weights.cols};
    if (tensor == kHidden) layer.bias_gradient = pass.dense_gradients + tensors_[kHiddenBias];
    if (tensor == kWeight) layer.bias_gradient = pass.dense_gradients + tensors_[kBias];
    layer.dx = dx;
    layer.write_dx = write;
    pass.ops.BackwardOfDense(layer);
  }

  // Return what a part reads, what its F reads, and what it gives.
  Matrix Read(size_t part) { return part == 0 ? Vectors(kInput) : Given(0); }
  Matrix Inner(size_t part) { return before_ ? Vectors(kNormalized + part) : Read(part); }
  Matrix Given(size_t part) { return Vectors((before_ ? kSum : kNormalized) + part); }

  Matrix Vectors(size_t array) { return Rows(array, dim_); }
  Matrix Hidden(size_t array) { return Rows(array, units_); }
  Matrix Rows(size_t array, size_t cols) {
    return {arrays_[array].Reserve(rows_ * cols), rows_, cols, cols};
  }
  // Returns the same matrix with one example per row.
  Matrix Wide(Matrix rows) const {
    const size_t cols = rows.cols * vectors_;
    return {rows.data, rows.rows / vectors_, cols, cols};
  }
  Matrix Scores(size_t array) {
    return arrays_[array].ReserveRows(rows_ / vectors_, size_t{heads_} * vectors_ * vectors_);
  }
  ConstMatrix Weights(const float* dense, size_t tensor) const {
    const size_t inputs = tensor == kWeight ? units_ : dim_;
    const size_t outputs = tensor == kHidden ? units_ : dim_;
    return {dense + tensors_[tensor], inputs, outputs, outputs};
  }
  template <typename Task>
  void SetShape(Task* task) const {
    task->fields = vectors_;
    task->heads = heads_;
    task->head_dim = dim_ / heads_;
    task->scale = 1.0f / std::sqrt(static_cast<float>(task->head_dim));
  }

  uint32_t place_, dim_, units_, vectors_, heads_;
  Activation activation_;
  bool earlier_, before_;
  SequenceLengths lengths_;
  size_t rows_ = 0;                         // Vectors of the pass, n * vectors_.
  std::array<size_t, kTensors> tensors_{};  // First floats in the flat array.
  std::deque<DeviceArray> arrays_;          // [kArrays]
};

}  // namespace

std::unique_ptr<Layer> NewTransformer(const LayerSite& site) {
  return std::make_unique<TransformerLayer>(site);
}

}  // namespace hdps
