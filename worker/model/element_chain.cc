// Computes a chain with one pass over the matrix for the values, and one more for column sums if it
// has a normalization; backward likewise.
#include "worker/model/element_chain.h"

#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"

namespace hdps {
namespace {

class ElementChainLayer : public ExchangeLayer {
 public:
  ElementChainLayer(uint32_t place, uint32_t input, ChainParts parts, DenseOps& ops)
      : place_(place),
        input_(input),
        parts_(parts),
        block_sums_(&ops),
        own_(&ops),
        totals_(&ops),
        columns_(&ops) {}

  uint32_t input() const { return input_; }
  const ChainParts& parts() const { return parts_; }
  // Takes over the work of the layer below; false if the order of the parts forbids it.
  bool TakeOver(const ElementChainLayer& below) {
    const bool activates = parts_.activation != Activation::kNone;
    const bool activated = below.parts_.activation != Activation::kNone;
    if (parts_.norm || below.parts_.dropout || (activates && activated)) return false;
    parts_.norm = below.parts_.norm;
    if (activated) parts_.activation = below.parts_.activation;
    input_ = below.input_;
    return true;
  }
  // Is true if the input's values are not used after this layer's values are computed.
  bool ForgetsInput() const { return !parts_.norm && parts_.activation == Activation::kNone; }

  bool has_exchange() const override { return parts_.norm && parts_.norm->over_batch; }

  void BeginForward(Pass& pass) override {
    if (parts_.norm) SumValues(pass);
  }

  Status EndForward(Pass& pass) override {
    if (parts_.norm) HDPS_RETURN_IF_ERROR(FindStatistics(pass));
    const Place& self = pass.places[place_];
    const ConstMatrix z = pass.places[input_].value;
    if (z.rows == 0) return {};
    const ElementChain chain = ChainOf(pass);
    const bool same =
        chain.mean == nullptr && chain.activation == Activation::kNone && chain.mask.threshold == 0;
    if (!same || z.data != self.value.data) pass.ops.RunRows(RunChain{chain, z, self.value});
    return {};
  }

  void BeginBackward(Pass& pass) override {
    if (parts_.norm) SumGradients(pass);
  }

  Status EndBackward(Pass& pass) override {
    if (parts_.norm) return NormBackward(pass);
    const Place& self = pass.places[place_];
    Place& input = pass.places[input_];
    if (!input.learns) return {};
    pass.ops.RunRows(RunChainBackward{ChainOf(pass), input.value, self.gradient,
                                      input.NextGradient(), input.gradient});
    return {};
  }

 private:
  enum Column : size_t { kMean, kVariance, kScale, kFactor, kShift, kAlong, kColumns };

  float* ColumnsOf(Column which) const { return columns_.data() + which * width_; }
  // [2, width] each: sums over this part's rows, and over all rows that are normalized together.
  double* Own() const { return reinterpret_cast<double*>(own_.data()); }
  double* Totals() const {
    return reinterpret_cast<double*>(together_ ? totals_.data() : own_.data());
  }

  ElementChain ChainOf(const Pass& pass) const {
    ElementChain chain;
    if (parts_.norm) {
      chain.mean = ColumnsOf(kMean);
      chain.factor = ColumnsOf(kFactor);
      chain.bias = pass.dense + parts_.norm->bias;
    }
    chain.activation = parts_.activation;
    if (pass.training && parts_.dropout) {
      chain.mask.stream = CombineKeys(parts_.dropout->stream, pass.batch.epoch);
      chain.mask.first_row = pass.batch.first_row + pass.batch.own_row;
      chain.mask.row_stride = pass.batch.row_stride;
      chain.mask.SetRate(parts_.dropout->rate);
    }
    return chain;
  }

  BlockSums SumsOver(size_t rows) {
    BlockSums sums{nullptr, rows, width_};
    sums.data = block_sums_.Reserve(sums.floats());
    return sums;
  }

  // Sends the two column sums and the number of rows to the other lanes and workers as doubles. The
  // squares of values far from zero then lose nothing that a float would show, and one exchange is
  // enough; sums of squared distances would need the mean first. Parts are added as the blocks of a
  // part are, so that cutting into parts changes no more than blocks do.
  void SumValues(Pass& pass) {
    const ConstMatrix z = pass.places[input_].value;
    width_ = pass.places[input_].width;
    columns_.Reserve(kColumns * width_);
    own_.Reserve(2 * width_ * sizeof(double) / sizeof(float));
    together_ = pass.training && pass.exchange != nullptr && has_exchange();
    count_ = pass.training ? static_cast<double>(z.rows) : 0;
    if (count_ > (together_ ? 0 : 1)) {
      const BlockSums sums = SumsOver(z.rows);
      pass.ops.RunRows(SumColumns{z, sums});
      pass.ops.RunRows(AddBlockSums{sums, true, Own()});
    }
    if (together_) Give(pass, z.rows);
  }

  Status FindStatistics(Pass& pass) {
    if (together_) HDPS_RETURN_IF_ERROR(Take(pass));
    ColumnStatistics statistics;
    statistics.totals = Totals();
    statistics.count = count_;
    statistics.epsilon = parts_.norm->epsilon;
    statistics.gain = pass.dense + parts_.norm->gain;
    statistics.running_mean = pass.dense + parts_.norm->running_mean;
    statistics.running_variance = pass.dense + parts_.norm->running_variance;
    statistics.mean = ColumnsOf(kMean);
    statistics.variance = ColumnsOf(kVariance);
    statistics.scale = ColumnsOf(kScale);
    statistics.factor = ColumnsOf(kFactor);
    statistics.cols = width_;
    pass.ops.RunRows(statistics);
    return {};
  }

  void SumGradients(Pass& pass) {
    const ConstMatrix z = pass.places[input_].value;
    if (z.rows > 0) {
      const BlockSums sums = SumsOver(z.rows);
      pass.ops.RunRows(SumChainBackward{ChainOf(pass), z, pass.places[place_].gradient, sums});
      pass.ops.RunRows(AddBlockSums{sums, false, Own()});
    }
    if (together_) Give(pass, z.rows);
  }

  // Gives Own() and its number of rows to the sum over lanes and workers.
  void Give(Pass& pass, size_t rows) {
    values_.assign(2 * width_ + 1, -0.0);
    if (rows > 0) {
      pass.ops.Download(own_.data(), AsFloats(2 * width_));
      values_.back() = static_cast<double>(rows);
    }
    ticket_ = pass.exchange->GiveToSum(pass.lane, values_);
  }

  // Sets Totals() and count_ to the sums over all lanes and workers.
  Status Take(Pass& pass) {
    values_.resize(2 * width_ + 1);
    HDPS_RETURN_IF_ERROR(pass.exchange->TakeSum(ticket_, values_));
    const std::span<const float> floats = AsFloats(2 * width_);
    pass.ops.Upload(floats, totals_.Reserve(floats.size()));
    count_ = values_.back();
    return {};
  }

  // Views the first values_ as floats, the unit of copies between devices.
  std::span<float> AsFloats(size_t doubles) {
    return {reinterpret_cast<float*>(values_.data()), doubles * sizeof(double) / sizeof(float)};
  }

  Status NormBackward(Pass& pass) {
    if (together_) HDPS_RETURN_IF_ERROR(Take(pass));
    const Place& self = pass.places[place_];
    Place& input = pass.places[input_];
    const ConstMatrix z = input.value;
    if (z.rows == 0) return {};
    ColumnGradients gradients;
    gradients.own = Own();
    gradients.totals = Totals();
    gradients.rows = static_cast<double>(z.rows);
    gradients.count = count_;
    gradients.mean = ColumnsOf(kMean);
    gradients.variance = ColumnsOf(kVariance);
    gradients.scale = ColumnsOf(kScale);
    gradients.running_mean = pass.dense + parts_.norm->running_mean;
    gradients.running_variance = pass.dense + parts_.norm->running_variance;
    gradients.gain_gradient = pass.dense_gradients + parts_.norm->gain;
    gradients.bias_gradient = pass.dense_gradients + parts_.norm->bias;
    gradients.mean_gradient = pass.dense_gradients + parts_.norm->running_mean;
    gradients.variance_gradient = pass.dense_gradients + parts_.norm->running_variance;
    gradients.shift = ColumnsOf(kShift);
    gradients.along = ColumnsOf(kAlong);
    gradients.cols = width_;
    pass.ops.RunRows(gradients);
    if (!input.learns) return {};
    pass.ops.RunRows(NormalizeColumnsBackward{ColumnsOf(kMean), ColumnsOf(kFactor),
                                              ColumnsOf(kShift), ColumnsOf(kAlong), z,
                                              self.gradient, input.NextGradient(), input.gradient});
    return {};
  }

  const uint32_t place_;
  uint32_t input_;
  ChainParts parts_;
  DeviceArray block_sums_, own_, totals_, columns_;
  std::vector<double> values_;  // Values of an exchange: [2, width], then the number of rows.
  // The current pass.
  size_t width_ = 0;
  bool together_ = false;  // The sums include other lanes and workers.
  StepExchange::Ticket ticket_ = 0;
  double count_ = 0;  // Number of rows normalized together; 0: the running statistics are used.
};

}  // namespace

std::unique_ptr<Layer> NewElementChain(uint32_t place, const Place& self, const ChainParts& parts,
                                       DenseOps& ops) {
  return std::make_unique<ElementChainLayer>(place, self.inputs[0], parts, ops);
}

void JoinChains(const Job& job, std::vector<Place>& places,
                std::vector<std::unique_ptr<Layer>>& layers) {
  for (uint32_t p = 0; p < places.size(); ++p) {
    auto* const chain = dynamic_cast<ElementChainLayer*>(layers[p].get());
    if (chain == nullptr || !places[p].used) continue;
    while (places[chain->input()].num_consumers == 1) {
      const uint32_t below = chain->input();
      const auto* const joined = dynamic_cast<const ElementChainLayer*>(layers[below].get());
      if (joined == nullptr || !chain->TakeOver(*joined)) break;
      layers[below] = std::make_unique<FusedPlaceholder>();
      places[below].fused = true;
    }
  }
  for (uint32_t p = 0; p < places.size(); ++p) {
    const auto* const chain = dynamic_cast<ElementChainLayer*>(layers[p].get());
    if (chain == nullptr || !places[p].used) continue;
    Place& input = places[chain->input()];
    if (input.num_consumers != 1) continue;
    // A chain reads each element of its gradient before it writes the input's gradient.
    input.gradient_home = static_cast<int>(p);
    // Backward of a dense layer asks only whether its output is positive; where dropout has set it
    // to zero, its gradient is zero already.
    const std::string& kind = job.model.layers[chain->input()].kind;
    if (chain->ForgetsInput() && (kind == "dense" || kind == "embedding")) {
      input.value_home = static_cast<int>(p);
    }
  }
}

}  // namespace hdps
