// Models a layer as products, passes over its values, a reduction and an update, and a conversion
// as bytes and exchanges.
#include "common/planning/strategy_cost.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"

namespace hdps {
namespace {

constexpr double kFloatBytes = sizeof(float);

double Part(double extent, uint32_t parts) { return std::ceil(extent / parts); }

}  // namespace

LayerCost StrategyCost::OfLayer(size_t layer, const LayerSplit& split) const {
  const LayerFacts& facts = facts_.layers[layer];
  const double rows = Part(facts_.batch, split.examples);
  const double width = static_cast<double>(facts.width);
  const double columns =
      facts.cut == LayerCut::kFeatures && facts.dim > 0
          ? Part(double(facts.features), split.columns) * std::min(width, double(facts.dim))
          : Part(width, split.columns);
  LayerCost cost;
  double flops = facts.flops, tensors = facts.tensor_floats;
  double values = rows * columns;
  if (facts.cut == LayerCut::kMatrix) {
    const double inputs = Part(double(facts.input_width), split.inputs);
    flops = 2 * inputs * columns;
    tensors = inputs * columns + columns;
    values += rows * inputs;
  } else if (facts.cut == LayerCut::kColumns && width > 0) {
    tensors *= columns / width;
  }
  // Forward, the gradient of the weights, and that of the input.
  constexpr double kPasses = 3;
  cost.compute_seconds = kPasses * flops * rows / rates_.flops_per_second +
                         2 * kFloatBytes * values / rates_.memory_bytes_per_second;
  if (facts.cut == LayerCut::kMatrix && split.inputs > 1) {  // Its summands, forward and backward.
    const Ways& sums = SumsOf(split);
    const double bytes = kFloatBytes * static_cast<double>(facts_.batch) * width;
    cost.compute_seconds += Seconds(sums.forward, sums.forward.share * bytes) +
                            Seconds(sums.backward, sums.backward.share * bytes);
  }
  if (!facts.table.empty()) {
    const double floats = rows * Part(double(facts.features), split.columns) * double(facts.dim);
    cost.compute_seconds += 2 * floats * rates_.row_float_seconds;
  }
  if (facts.at_servers) {
    // Weights come and gradients go in the messages of a step's rows.
    cost.reduce_seconds = 2 * tensors * rates_.row_float_seconds;
  } else if (tensors > 0 && split.examples > 1) {
    const double share = 2.0 * (split.examples - 1) / split.examples;
    cost.reduce_seconds = share * kFloatBytes * tensors / rates_.link_bytes_per_second;
    // Gradients of layers that equally many workers share are sent together, so each has its part
    // of one call.
    const auto learning = std::ranges::count_if(facts_.layers, [](const LayerFacts& other) {
      return other.tensor_floats > 0 && !other.at_servers;
    });
    cost.reduce_seconds += rates_.exchange_seconds / static_cast<double>(learning);
  }
  // At servers, which are as many as workers, each adds up all workers' gradients for its part.
  cost.update_seconds = tensors * rates_.update_float_seconds;
  constexpr double kWeightAndGradient = 2;
  const double state_floats = facts.at_servers ? 0 : facts_.state_floats;
  cost.weight_floats = tensors;
  // Rounded to a whole number, so that sums in any order are equal.
  cost.memory_bytes =
      std::ceil(kFloatBytes * (tensors * (kWeightAndGradient + state_floats) + 2 * rows * columns));
  return cost;
}

size_t StrategyCost::HashOfKey::operator()(const WayKey& key) const {
  uint64_t hash = 0;
  for (const uint32_t number : key) hash = MixBits(hash + number);
  return hash;
}

const StrategyCost::Ways& StrategyCost::WaysOf(const WayKey& key, LayerCut from,
                                               const LayerSplit& from_split, const LayerCut* to,
                                               const LayerSplit& to_split) const {
  const auto found = ways_.find(key);
  if (found != ways_.end()) return found->second;
  const LayerLayouts source = LayoutsOf(from, from_split, workers_);
  LayerLayouts target;
  target.input = target.input_gradient = Layout::OwnRows(workers_);
  if (to != nullptr) target = LayoutsOf(*to, to_split, workers_);
  const Ways ways = {WayOf(source.output, target.input),
                     WayOf(target.input_gradient, source.output_gradient)};
  return ways_.emplace(key, ways).first->second;
}

const StrategyCost::Ways& StrategyCost::SumsOf(const LayerSplit& split) const {
  constexpr uint32_t kSumsOfLayer = UINT32_MAX - 1;
  const WayKey key = {kSumsOfLayer, split.examples, split.inputs, split.columns};
  const auto found = ways_.find(key);
  if (found != ways_.end()) return found->second;
  const LayerLayouts layouts = LayoutsOf(LayerCut::kMatrix, split, workers_);
  const Ways ways = {WayOf(layouts.product, layouts.output),
                     WayOf(layouts.output_gradient, layouts.product_gradient)};
  return ways_.emplace(key, ways).first->second;
}

StrategyCost::Way StrategyCost::WayOf(const Layout& at, const Layout& wanted) {
  const Conversion conversion = ConversionOf(at, wanted);
  Way way;
  way.name = ConversionName(conversion.kind);
  way.share = FloatsSent(conversion, 1, 1);
  if (way.share > 0) way.exchanges = static_cast<double>(conversion.way.size() - 1);
  return way;
}

double StrategyCost::Seconds(const Way& way, double bytes) const {
  return way.exchanges * rates_.exchange_seconds + bytes / rates_.link_bytes_per_second;
}

ConversionCost StrategyCost::OfConversion(size_t from, const LayerSplit& from_split, size_t to,
                                          const LayerSplit& to_split) const {
  const LayerFacts& facts = facts_.layers[from];
  const LayerCut* to_cut = to == kLoss ? nullptr : &facts_.layers[to].cut;
  constexpr uint32_t kCutOfLoss = UINT32_MAX;
  const WayKey key = {static_cast<uint32_t>(facts.cut),
                      from_split.examples,
                      from_split.inputs,
                      from_split.columns,
                      to_cut == nullptr ? kCutOfLoss : static_cast<uint32_t>(*to_cut),
                      to_split.examples,
                      to_split.inputs,
                      to_split.columns};
  const Ways& ways = WaysOf(key, facts.cut, from_split, to_cut, to_split);
  const double bytes =
      kFloatBytes * static_cast<double>(facts_.batch) * static_cast<double>(facts.width);
  ConversionCost cost;
  cost.forward = ways.forward.name;
  cost.forward_bytes = ways.forward.share * bytes;
  cost.seconds = Seconds(ways.forward, cost.forward_bytes);
  if (!facts.learns) return cost;
  cost.backward = ways.backward.name;
  cost.backward_bytes = ways.backward.share * bytes;
  cost.seconds += Seconds(ways.backward, cost.backward_bytes);
  return cost;
}

StrategyTotal TotalOf(const JobFacts& facts, const Strategy& strategy, const StepRates& rates) {
  const StrategyCost cost(facts, strategy.workers, rates);
  StrategyTotal total;
  for (size_t i = 0; i < facts.layers.size(); ++i) {
    const LayerCost layer = cost.OfLayer(i, strategy.layers[i]);
    total.seconds += layer.seconds();
    total.memory_bytes += layer.memory_bytes;
    for (const uint32_t input : facts.layers[i].inputs) {
      total.seconds +=
          cost.OfConversion(input, strategy.layers[input], i, strategy.layers[i]).seconds;
    }
  }
  if (facts.layers.empty()) return total;
  const size_t last = facts.layers.size() - 1;
  total.seconds += cost.OfConversion(last, strategy.layers[last], kLoss, {}).seconds;
  return total;
}

}  // namespace hdps
