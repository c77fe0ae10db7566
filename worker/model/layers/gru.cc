// A gated recurrent unit over a sequence: GRU, or AUGRU with attention to a target (Zhou et al.
// 2019).
#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"
#include "worker/model/sequence_lengths.h"

namespace hdps {
namespace {

// Computes one step after the other for all examples. Arrays have no gaps; block t of a row is that
// of step t.
//
// Invariant: steps behind the last vector of an example give 0, and have no part in any gradient.
class GruLayer : public Layer {
 public:
  explicit GruLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.input(0).vector_dim),
        units_(site.spec.units),
        steps_(site.input(0).width / dim_),
        target_(site.self().inputs.size() == 2 ? site.input(1).width : 0),
        input_weight_(site.TensorAt(0)),
        state_weight_(site.TensorAt(1)),
        bias_(site.TensorAt(2)),
        attention_(target_ > 0 ? site.TensorAt(3) : 0),
        lengths_(site),
        input_(&site.ops),
        input_gradient_(&site.ops),
        gates_(&site.ops),
        products_(&site.ops),
        states_(&site.ops),
        carried_(&site.ops),
        question_(&site.ops),
        question_gradient_(&site.ops),
        scores_(&site.ops),
        weights_(&site.ops) {}

  void Bring(Pass& pass) override { lengths_.Bring(pass); }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    n_ = self.value.rows;
    pass.ops.Copy(Write::kOver, pass.places[self.inputs[0]].value, Input());
    pass.ops.Gemm({.bias = pass.dense + bias_}, ByVector(Input(), dim_), InputWeight(pass.dense),
                  ByVector(Gates(), 3 * units_));
    if (target_ > 0) Attend(pass);
    pass.ops.RunRows(FillElements{0.0f, State(0)});
    for (size_t t = 0; t < steps_; ++t) {
      pass.ops.Gemm({}, State(t), StateWeight(pass.dense), Step(Products(), t));
      GruStep task;
      task.step = t;
      task.counts = lengths_.counts();
      if (target_ > 0) task.weights = Weights();
      task.before = State(t);
      task.products = Step(Products(), t);
      task.gates = Step(Gates(), t);
      task.state = State(t + 1);
      pass.ops.RunRows(task);
    }
    pass.ops.Copy(Write::kOver, States().Columns(units_, self.width), self.value);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const Matrix carried{carried_.Reserve(n_ * units_), n_, units_, units_};
    pass.ops.RunRows(FillElements{0.0f, carried});
    for (size_t t = steps_; t-- > 0;) {
      GruStepBackward task;
      task.step = t;
      task.counts = lengths_.counts();
      if (target_ > 0) task.weights = Weights();
      task.before = State(t);
      task.dstate = self.gradient.Columns(t * units_, units_);
      task.gates = Step(Gates(), t);
      task.products = Step(Products(), t);
      task.carried = carried;
      if (target_ > 0) task.dweights = Scores();
      pass.ops.RunRows(task);
      DenseBackward layer;
      layer.dy = task.products;
      layer.weights = StateWeight(pass.dense);
      layer.dx = carried;
      layer.write_dx = Write::kAdd;
      pass.ops.BackwardOfDense(layer);
      const Write write = t + 1 == steps_ ? Write::kOver : Write::kAdd;
      pass.ops.Gemm({.transpose_a = true, .write = write}, State(t), task.products,
                    {pass.dense_gradients + state_weight_, units_, 3 * units_, 3 * units_});
    }
    BackwardOfInput(pass);
  }

 private:
  // Weighs the steps by softmax over the sequence of <vector W, target>.
  void Attend(Pass& pass) {
    const Place& target = pass.places[pass.places[place_].inputs[1]];
    pass.ops.Gemm({.transpose_b = true}, target.value, Attention(pass.dense), Question());
    pass.ops.RunRows(WeightsBackward{Input(), Question(), Scores()});
    pass.ops.RunRows(SoftmaxRows{lengths_.counts(), Scores(), Weights()});
  }

  void BackwardOfInput(Pass& pass) {
    Place& input = pass.places[pass.places[place_].inputs[0]];
    const Matrix dx{input_gradient_.Reserve(n_ * steps_ * dim_), n_, steps_ * dim_, steps_ * dim_};
    DenseBackward layer;
    layer.x = ByVector(Input(), dim_);
    layer.weights = InputWeight(pass.dense);
    layer.dy = ByVector(Gates(), 3 * units_);
    layer.weight_gradient = {pass.dense_gradients + input_weight_, dim_, 3 * units_, 3 * units_};
    layer.bias_gradient = pass.dense_gradients + bias_;
    layer.dx = ByVector(dx, dim_);
    pass.ops.BackwardOfDense(layer);
    if (target_ > 0) AttendBackward(pass, dx);
    pass.ops.Copy(input.NextGradient(), dx, input.gradient);
  }

  // Adds to dx what goes through the scores, whose gradients the steps have left in Scores().
  void AttendBackward(Pass& pass, Matrix dx) {
    Place& target = pass.places[pass.places[place_].inputs[1]];
    pass.ops.RunRows(SoftmaxRowsBackward{Weights(), Scores(), Write::kOver, Scores()});
    pass.ops.RunRows(WeighVectorsBackward{Scores(), Question(), Write::kAdd, dx});
    const Matrix question{question_gradient_.Reserve(n_ * dim_), n_, dim_, dim_};
    pass.ops.RunRows(WeighVectors{Scores(), Input(), question});
    pass.ops.Gemm({.transpose_a = true}, question, target.value,
                  {pass.dense_gradients + attention_, dim_, target_, target_});
    if (!target.learns) return;
    pass.ops.Gemm({.write = target.NextGradient()}, question, Attention(pass.dense),
                  target.gradient);
  }

  Matrix Rows(DeviceArray& array, size_t cols) {
    return {array.Reserve(n_ * cols), n_, cols, cols};
  }
  Matrix Input() { return Rows(input_, size_t{steps_} * dim_); }
  Matrix Gates() { return Rows(gates_, size_t{steps_} * 3 * units_); }
  Matrix Products() { return Rows(products_, size_t{steps_} * 3 * units_); }
  Matrix States() { return Rows(states_, (size_t{steps_} + 1) * units_); }
  Matrix Question() { return Rows(question_, dim_); }
  Matrix Scores() { return Rows(scores_, steps_); }
  Matrix Weights() { return Rows(weights_, steps_); }
  // Returns the state before step t.
  Matrix State(size_t t) { return States().Columns(t * units_, units_); }
  Matrix Step(Matrix all, size_t t) const {
    return all.Columns(t * 3 * units_, size_t{3} * units_);
  }
  // Returns the same matrix with a row for each vector.
  static Matrix ByVector(Matrix all, size_t cols) {
    return {all.data, all.rows * (all.cols / cols), cols, cols};
  }
  ConstMatrix InputWeight(const float* dense) const {
    return {dense + input_weight_, dim_, size_t{3} * units_, size_t{3} * units_};
  }
  ConstMatrix StateWeight(const float* dense) const {
    return {dense + state_weight_, units_, size_t{3} * units_, size_t{3} * units_};
  }
  ConstMatrix Attention(const float* dense) const {
    return {dense + attention_, dim_, target_, target_};
  }

  uint32_t place_, dim_, units_, steps_;
  uint32_t target_;                                        // Width of the target; 0: a plain GRU.
  size_t input_weight_, state_weight_, bias_, attention_;  // First floats in the flat array.
  size_t n_ = 0;                                           // Examples of the pass.
  SequenceLengths lengths_;
  DeviceArray input_, input_gradient_;        // [n, steps * dim]
  DeviceArray gates_, products_;              // [n, steps * 3 * units]
  DeviceArray states_;                        // [n, (steps + 1) * units], the first of them 0.
  DeviceArray carried_;                       // [n, units]
  DeviceArray question_, question_gradient_;  // [n, dim]: the target times W.
  DeviceArray scores_, weights_;              // [n, steps]
};

}  // namespace

std::unique_ptr<Layer> NewGru(const LayerSite& site) { return std::make_unique<GruLayer>(site); }

}  // namespace hdps
