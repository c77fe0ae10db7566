// The attention of DIN: pools a sequence with weights that depend on each vector and a target (Zhou
// et al. 2018).
#include "common/job/activation.h"
#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"
#include "worker/model/sequence_lengths.h"

namespace hdps {
namespace {

// Computes the attention in blocks where the device has that, and else with arrays in which vector
// p of example i is row i * length_ + p.
class DinLayer : public Layer {
 public:
  explicit DinLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.self().width),
        units_(site.spec.units),
        length_(site.input(0).width / dim_),
        activation_(site.spec.activation),
        softmax_(site.Word("scores") == "softmax"),
        weight_(site.TensorAt(0)),
        bias_(site.TensorAt(1)),
        score_(site.TensorAt(2)),
        score_bias_(softmax_ ? 0 : site.TensorAt(3)),
        lengths_(site),
        in_blocks_(site.ops.NewTargetAttention()),
        features_(&site.ops),
        product_(&site.ops),
        hidden_(&site.ops),
        scores_(&site.ops),
        weights_(&site.ops),
        hidden_gradient_(&site.ops) {}

  void Bring(Pass& pass) override { lengths_.Bring(pass); }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    if (in_blocks_ != nullptr) {
      in_blocks_->Forward(Shape(), TensorsIn(pass.dense), Input(pass), self.value);
      return;
    }
    const ConstMatrix keys = pass.places[self.inputs[0]].value;
    const size_t rows = keys.rows * length_;
    const Matrix z = features_.ReserveRows(rows, 4 * size_t{dim_});
    const Matrix product = product_.ReserveRows(rows, units_);
    const Matrix hidden = hidden_.ReserveRows(rows, units_);
    pass.ops.RunRows(DinFeatures{dim_, keys, pass.places[self.inputs[1]].value, z});
    pass.ops.Gemm({.bias = pass.dense + bias_}, z, Weights(pass.dense), product);
    pass.ops.RunRows(Activate{activation_, product, hidden});
    GemmSpec scoring;
    if (!softmax_) scoring.bias = pass.dense + score_bias_;
    pass.ops.Gemm(scoring, hidden, {pass.dense + score_, units_, 1, 1},
                  {scores_.Reserve(rows), rows, 1, 1});
    const ConstMatrix scores{scores_.data(), keys.rows, length_, length_};
    const Matrix weights = Of(weights_, keys.rows);
    if (softmax_) {
      pass.ops.RunRows(SoftmaxRows{lengths_.counts(), scores, weights});
    } else {
      pass.ops.RunRows(MaskRows{lengths_.counts(), scores, weights});
    }
    pass.ops.RunRows(WeighVectors{weights, keys, self.value});
  }

  void Backward(Pass& pass) override {
    if (in_blocks_ != nullptr) return BackwardInBlocks(pass);
    const Place& self = pass.places[place_];
    Place &sequence = pass.places[self.inputs[0]], &target = pass.places[self.inputs[1]];
    const size_t n = self.value.rows, rows = n * length_;
    const Matrix weights = Of(weights_, n), slopes = Of(scores_, n);
    // First the gradients of the keys as summands, before the weights are overwritten.
    pass.ops.RunRows(
        WeighVectorsBackward{weights, self.gradient, sequence.NextGradient(), sequence.gradient});
    pass.ops.RunRows(WeightsBackward{sequence.value, self.gradient, slopes});
    if (softmax_) {
      pass.ops.RunRows(SoftmaxRowsBackward{weights, slopes, Write::kOver, slopes});
    } else {
      pass.ops.RunRows(MaskRows{lengths_.counts(), slopes, slopes});
    }
    const Matrix score_gradient{slopes.data, rows, 1, 1};
    const Matrix hidden_gradient = hidden_gradient_.ReserveRows(rows, units_);
    DenseBackward scoring;
    scoring.x = hidden_.ReserveRows(rows, units_);
    scoring.weights = {pass.dense + score_, units_, 1, 1};
    scoring.dy = score_gradient;
    scoring.weight_gradient = {pass.dense_gradients + score_, units_, 1, 1};
    if (!softmax_) scoring.bias_gradient = pass.dense_gradients + score_bias_;
    scoring.dx = hidden_gradient;
    pass.ops.BackwardOfDense(scoring);
    pass.ops.RunRows(
        ActivateBackward{activation_, product_.ReserveRows(rows, units_), hidden_gradient});
    BackwardOfHidden(pass, hidden_gradient);
    const Matrix dz = product_.ReserveRows(rows, 4 * size_t{dim_});
    pass.ops.RunRows(DinFeaturesBackward{dim_, target.value, dz, sequence.gradient});
    if (!target.learns) return;
    pass.ops.RunRows(
        DinQueryBackward{dim_, sequence.value, dz, target.NextGradient(), target.gradient});
  }

 private:
  // ---- in blocks.

  TargetAttentionShape Shape() const { return {dim_, units_, activation_, softmax_}; }
  template <typename Float>
  TargetAttentionTensors<Float> TensorsIn(Float* dense) const {
    return {dense + weight_, dense + bias_, dense + score_,
            softmax_ ? nullptr : dense + score_bias_};
  }
  TargetAttentionInput Input(const Pass& pass) const {
    const Place& self = pass.places[place_];
    return {lengths_.counts(), pass.places[self.inputs[0]].value,
            pass.places[self.inputs[1]].value};
  }
  void BackwardInBlocks(Pass& pass) {
    const Place& self = pass.places[place_];
    Place &sequence = pass.places[self.inputs[0]], &target = pass.places[self.inputs[1]];
    TargetAttentionBackward backward;
    backward.dy = self.gradient;
    backward.tensors = TensorsIn(pass.dense_gradients);
    backward.write_dkeys = sequence.NextGradient();
    backward.dkeys = sequence.gradient;
    if (target.learns) {
      backward.write_dtarget = target.NextGradient();
      backward.dtarget = target.gradient;
    }
    in_blocks_->Backward(Shape(), TensorsIn(pass.dense), Input(pass), backward);
  }

  // ---- with arrays.

  Matrix Of(DeviceArray& array, size_t n) const {
    return {array.Reserve(n * length_), n, length_, length_};
  }
  ConstMatrix Weights(const float* dense) const {
    return {dense + weight_, 4 * size_t{dim_}, units_, units_};
  }

  // Leaves the gradient of the features in product_, whose values are no longer needed.
  void BackwardOfHidden(Pass& pass, ConstMatrix gradient) {
    const size_t rows = gradient.rows;
    DenseBackward layer;
    layer.x = features_.ReserveRows(rows, 4 * size_t{dim_});
    layer.weights = Weights(pass.dense);
    layer.dy = hidden_gradient_.ReserveRows(rows, units_);
    layer.weight_gradient = {pass.dense_gradients + weight_, 4 * size_t{dim_}, units_, units_};
    layer.bias_gradient = pass.dense_gradients + bias_;
    layer.dx = product_.ReserveRows(rows, 4 * size_t{dim_});
    pass.ops.BackwardOfDense(layer);
  }

  uint32_t place_, dim_, units_, length_;
  Activation activation_;
  bool softmax_;
  size_t weight_, bias_, score_, score_bias_;  // First floats in the flat array.
  SequenceLengths lengths_;
  const std::unique_ptr<TargetAttention> in_blocks_;
  DeviceArray features_;          // [n * length, 4 * dim]
  DeviceArray product_, hidden_;  // [n * length, units]
  DeviceArray scores_, weights_;  // [n, length]
  DeviceArray hidden_gradient_;   // [n * length, units]
};

}  // namespace

std::unique_ptr<Layer> NewDin(const LayerSite& site) { return std::make_unique<DinLayer>(site); }

}  // namespace hdps
