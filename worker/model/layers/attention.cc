// Multi-head self-attention over the vectors of an example (Song et al. 2019, eq. 5-8).
#include <array>
#include <deque>

#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Computes the attention in blocks where the device has that, and else with arrays without gaps, in
// which vector f of example i is row i * fields_ + f.
class AttentionLayer : public Layer {
 public:
  explicit AttentionLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.input(0).vector_dim),
        units_(site.spec.units),
        fields_(site.input(0).width / dim_),
        heads_(static_cast<uint32_t>(site.Number("heads"))),
        in_blocks_(site.ops.NewFieldAttention()),
        input_(&site.ops),
        weights_(&site.ops),
        score_gradients_(&site.ops),
        input_gradient_(&site.ops) {
    for (size_t i = 0; i < kProjections; ++i) {
      tensors_[i] = site.TensorAt(i);
      projected_.emplace_back(&site.ops);
      gradients_.emplace_back(&site.ops);
    }
  }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    if (in_blocks_ != nullptr) {
      in_blocks_->Forward(Shape(), TensorsIn(pass.dense), pass.places[self.inputs[0]].value,
                          self.value);
      return;
    }
    const size_t n = self.value.rows;
    const Matrix x = Rows(input_, n, dim_);
    pass.ops.Copy(Write::kOver, pass.places[self.inputs[0]].value, Wide(x));
    for (size_t i = 0; i < kProjections; ++i) {
      pass.ops.Gemm({}, x, Weights(pass.dense, i), Rows(projected_[i], n, units_));
    }
    AttendFields task;
    SetShape(&task);
    task.queries = projected_[kQuery].data();
    task.keys = projected_[kKey].data();
    task.values = projected_[kValue].data();
    task.residuals = projected_[kResidual].data();
    task.weights = Scores(weights_, n);
    task.y = self.value;
    pass.ops.RunRows(task);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    if (in_blocks_ != nullptr) return BackwardInBlocks(pass);
    const size_t n = self.value.rows;
    for (DeviceArray& gradient : gradients_) Rows(gradient, n, units_);
    OfScores(pass, n);
    const Matrix x = Rows(input_, n, dim_), dx = Rows(input_gradient_, n, dim_);
    Place& input = pass.places[self.inputs[0]];
    for (size_t i = 0; i < kProjections; ++i) {
      DenseBackward layer;
      layer.x = x;
      layer.weights = Weights(pass.dense, i);
      layer.dy = Rows(gradients_[i], n, units_);
      layer.weight_gradient = {pass.dense_gradients + tensors_[i], dim_, units_, units_};
      if (input.learns) layer.dx = dx;
      layer.write_dx = i == 0 ? Write::kOver : Write::kAdd;
      pass.ops.BackwardOfDense(layer);
    }
    if (input.learns) pass.ops.Copy(input.NextGradient(), Wide(dx), input.gradient);
  }

 private:
  enum Projection : size_t { kQuery, kKey, kValue, kResidual, kProjections };
  static_assert(kProjections == kAttentionProjections);

  void BackwardInBlocks(Pass& pass) {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    AttentionBackward backward;
    backward.x = input.value;
    backward.y = self.value;
    backward.dy = self.gradient;
    backward.weight_gradients = TensorsIn(pass.dense_gradients);
    if (input.learns) {
      backward.write_dx = input.NextGradient();
      backward.dx = input.gradient;
    }
    in_blocks_->Backward(Shape(), TensorsIn(pass.dense), backward);
  }
  AttentionShape Shape() const { return {fields_, dim_, heads_, units_ / heads_}; }
  template <typename Float>
  AttentionTensors<Float> TensorsIn(Float* dense) const {
    AttentionTensors<Float> tensors;
    for (size_t i = 0; i < kProjections; ++i) tensors[i] = dense + tensors_[i];
    return tensors;
  }

  // Computes the gradients of all projections.
  void OfScores(Pass& pass, size_t n) {
    const Place& self = pass.places[place_];
    AttendFieldsBackward queries;
    SetShape(&queries);
    queries.keys = projected_[kKey].data();
    queries.values = projected_[kValue].data();
    queries.weights = Scores(weights_, n);
    queries.y = self.value;
    queries.dy = self.gradient;
    queries.dscores = Scores(score_gradients_, n);
    queries.dqueries = gradients_[kQuery].data();
    queries.dresiduals = gradients_[kResidual].data();
    pass.ops.RunRows(queries);
    AttendedFieldsBackward keys;
    SetShape(&keys);
    keys.queries = projected_[kQuery].data();
    keys.dresiduals = gradients_[kResidual].data();
    keys.weights = queries.weights;
    keys.dscores = queries.dscores;
    keys.dkeys = gradients_[kKey].data();
    keys.dvalues = gradients_[kValue].data();
    pass.ops.RunRows(keys);
  }

  template <typename Task>
  void SetShape(Task* task) const {
    task->fields = fields_;
    task->heads = heads_;
    task->head_dim = units_ / heads_;
  }
  Matrix Rows(DeviceArray& array, size_t n, size_t cols) const {
    return {array.Reserve(n * fields_ * cols), n * fields_, cols, cols};
  }
  // Returns the same matrix with one example per row.
  Matrix Wide(Matrix rows) const {
    const size_t cols = rows.cols * fields_;
    return {rows.data, rows.rows / fields_, cols, cols};
  }
  Matrix Scores(DeviceArray& array, size_t n) const {
    return array.ReserveRows(n, size_t{heads_} * fields_ * fields_);
  }
  ConstMatrix Weights(const float* dense, size_t i) const {
    return {dense + tensors_[i], dim_, units_, units_};
  }

  uint32_t place_, dim_, units_, fields_, heads_;
  const std::unique_ptr<FieldAttention> in_blocks_;
  std::array<size_t, kProjections> tensors_;       // Positions of the tensors' first floats.
  DeviceArray input_;                              // [n * fields, dim]
  DeviceArray weights_, score_gradients_;          // [n, heads * fields * fields]
  std::deque<DeviceArray> projected_, gradients_;  // [projections] of [n * fields, units]
  DeviceArray input_gradient_;                     // [n * fields, dim]
};

}  // namespace

std::unique_ptr<Layer> NewAttention(const LayerSite& site) {
  return std::make_unique<AttentionLayer>(site);
}

}  // namespace hdps
