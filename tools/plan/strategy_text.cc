// Prints the table of a strategy, and each worker's parts.
#include <algorithm>

#include "common/base/byte_count.h"
#include "common/base/show_number.h"
#include "common/planning/strategy_cost.h"
#include "tools/plan/aligned_rows.h"
#include "tools/plan/strategy_view.h"

namespace hdps {
namespace {

std::string Bytes(double bytes) { return ShowByteCount(static_cast<uint64_t>(bytes)); }

std::string Milliseconds(double seconds) { return ShowNumber("%.3g ms", seconds * 1e3); }

using Row = std::vector<std::string>;

void AddConversion(const std::string& way, const ConversionCost& cost, std::vector<Row>* rows) {
  if (cost.forward_bytes + cost.backward_bytes == 0) return;
  rows->push_back({"    " + way + ": " + cost.forward + " " + Bytes(cost.forward_bytes) +
                   ", back " + cost.backward + " " + Bytes(cost.backward_bytes) + ", " +
                   Milliseconds(cost.seconds)});
}

// Returns the part of a layer's weight, or of its columns, that a worker has: "deep1[0:429,
// 256:512]".
std::string PartOf(const LayerFacts& layer, const LayerSplit& split, uint32_t workers,
                   uint32_t rank, double* floats) {
  const LayerLayouts layouts = LayoutsOf(layer.cut, split, workers);
  const uint32_t column = layouts.output.PartOf(rank, AxisRole::kColumns);
  const auto range = [](Cut cut) {
    return std::to_string(cut.begin) + ":" + std::to_string(cut.end());
  };
  const Cut columns = CutOf(layer.width, column, split.columns);
  if (layer.cut == LayerCut::kMatrix) {
    const Cut inputs =
        CutOf(layer.input_width, layouts.output.PartOf(rank, AxisRole::kSums), split.inputs);
    *floats = static_cast<double>((inputs.size + 1) * columns.size);
    return layer.name + "[" + range(inputs) + ", " + range(columns) + "]";
  }
  if (layer.cut == LayerCut::kFeatures) {
    return layer.name + " features " + range(CutOf(layer.features, column, split.columns));
  }
  *floats = layer.tensor_floats;
  if (layer.cut == LayerCut::kColumns && layer.width > 0) {
    *floats *= static_cast<double>(columns.size) / static_cast<double>(layer.width);
  }
  return layer.name + " columns " + range(columns);
}

std::string WorkerLine(const StrategyView& view, const StrategyCost& cost, uint32_t rank) {
  const uint32_t workers = view.strategy.workers;
  double bytes = 0, memory = 0;
  std::string parts;
  for (size_t i = 0; i < view.facts.layers.size(); ++i) {
    const LayerFacts& layer = view.facts.layers[i];
    const LayerSplit& split = view.strategy.layers[i];
    double floats = layer.tensor_floats;
    memory += cost.OfLayer(i, split).memory_bytes;
    const bool cut = split.inputs > 1 || split.columns > 1;
    const std::string part = PartOf(layer, split, workers, rank, &floats);
    bytes += sizeof(float) * floats;
    const bool holds = layer.tensor_floats > 0 || !layer.table.empty();
    if (cut && holds) parts += (parts.empty() ? "" : ", ") + part;
  }
  return "worker " + std::to_string(rank) + ": " + Bytes(bytes) + " of weights, about " +
         Bytes(memory) + " with gradients, state and values; " +
         (parts.empty() ? "all layers whole" : parts + ", the other layers whole");
}

}  // namespace

std::string StrategyText(const StrategyView& view) {
  const uint32_t workers = view.strategy.workers;
  const StrategyCost cost(view.facts, workers, view.rates);
  std::vector<Row> rows = {
      {"layer", "kind", "split", "input", "output", "weights a worker", "time"}};
  for (size_t i = 0; i < view.facts.layers.size(); ++i) {
    const LayerFacts& layer = view.facts.layers[i];
    const LayerSplit& split = view.strategy.layers[i];
    const LayerCost of = cost.OfLayer(i, split);
    const LayerLayouts layouts = LayoutsOf(layer.cut, split, workers);
    rows.push_back({layer.name, layer.kind, ShowSplit(split, workers),
                    layer.inputs.empty() ? "" : layouts.input.Shown(), layouts.output.Shown(),
                    of.weight_floats == 0 ? "" : Bytes(sizeof(float) * of.weight_floats),
                    Milliseconds(of.seconds())});
    for (const uint32_t input : layer.inputs) {
      AddConversion("from " + view.facts.layers[input].name,
                    cost.OfConversion(input, view.strategy.layers[input], i, split), &rows);
    }
  }
  if (!view.facts.layers.empty()) {
    const size_t last = view.facts.layers.size() - 1;
    AddConversion("to the loss", cost.OfConversion(last, view.strategy.layers[last], kLoss, {}),
                  &rows);
  }
  const StrategyTotal total = TotalOf(view.facts, view.strategy, view.rates);
  std::string text = view.heading + "\n\n" + AlignedRows(rows) + "\n";
  text += "a step of " + std::to_string(view.facts.batch) + " examples: about " +
          Milliseconds(total.seconds) + " of dense layers, rows and what moves between workers; " +
          "memory of a worker about " + Bytes(total.memory_bytes) + "\n\n";
  for (uint32_t rank = 0; rank < workers; ++rank) text += WorkerLine(view, cost, rank) + "\n";
  return text;
}

}  // namespace hdps
