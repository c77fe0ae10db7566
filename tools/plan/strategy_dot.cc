// Writes boxes and edges of a model, colored by what is cut, in the language of graphviz.
#include <algorithm>
#include <array>

#include "common/base/byte_count.h"
#include "common/base/show_number.h"
#include "common/planning/strategy_cost.h"
#include "tools/plan/strategy_view.h"

namespace hdps {
namespace {

struct Colour {
  const char* fill;
  const char* meaning;
};
constexpr std::array<Colour, 5> kColours = {{{"#dbe9f9", "own rows: data parallel"},
                                             {"#d8f0d8", "columns or features cut"},
                                             {"#fde3c8", "inputs cut"},
                                             {"#ead9f5", "inputs and columns cut"},
                                             {"#e6e6e6", "the same at several workers"}}};

const char* FillOf(const LayerSplit& split, uint32_t workers) {
  if (split == OwnRowsSplit(workers)) return kColours[0].fill;
  if (split.inputs > 1) return kColours[split.columns > 1 ? 3 : 2].fill;
  return kColours[split.columns > 1 ? 1 : 4].fill;
}

std::string Bytes(double bytes) { return ShowByteCount(static_cast<uint64_t>(bytes)); }

// Quotes lines of text as a DOT string.
std::string Quoted(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty()) text += "\\n";
    for (const char c : line) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return '"' + text + '"';
}

std::string TitleOf(const StrategyView& view) {
  const StrategyTotal total = TotalOf(view.facts, view.strategy, view.rates);
  return std::to_string(view.strategy.workers) + " workers, " + std::to_string(view.facts.batch) +
         " examples a step: about " + ShowNumber("%.3g ms", 1e3 * total.seconds) + ", " +
         Bytes(total.memory_bytes) + " a worker";
}

std::string Legend() {
  std::string rows;
  for (const Colour& colour : kColours) {
    rows += "<tr><td border=\"1\" bgcolor=\"" + std::string(colour.fill) +
            "\">   </td><td align=\"left\">" + colour.meaning + "</td></tr>";
  }
  return "  legend [shape=plain, style=\"\", label=<<table border=\"0\">" + rows + "</table>>];\n";
}

std::string Box(const std::string& name, const std::vector<std::string>& lines, const char* fill) {
  return "  " + name + " [label=" + Quoted(lines) + ", fillcolor=\"" + fill + "\"];\n";
}

std::string Edge(const std::string& from, const std::string& to, const ConversionCost& cost) {
  std::vector<std::string> label;
  if (cost.forward_bytes + cost.backward_bytes > 0) {
    label = {std::string(cost.forward) + " " + Bytes(cost.forward_bytes),
             std::string("back ") + cost.backward + " " + Bytes(cost.backward_bytes)};
  }
  return "  " + from + " -> " + to + " [label=" + Quoted(label) + "];\n";
}

std::string NameOf(size_t layer) { return "layer" + std::to_string(layer); }

std::vector<std::string> LinesOf(const LayerFacts& layer, double weight_floats,
                                 const Layout& output) {
  std::string sizes = layer.kind + " " + std::to_string(layer.width);
  if (layer.cut == LayerCut::kMatrix) {
    sizes =
        layer.kind + " " + std::to_string(layer.input_width) + " x " + std::to_string(layer.width);
  }
  std::string below = "no weights";
  if (!layer.table.empty()) below = "rows of " + layer.table;
  if (weight_floats > 0) below = Bytes(sizeof(float) * weight_floats) + " of weights each";
  return {layer.name + ": " + sizes, "gives " + output.Shown(), below};
}

}  // namespace

std::string StrategyDot(const StrategyView& view) {
  const std::vector<LayerFacts>& layers = view.facts.layers;
  const std::vector<LayerSplit>& splits = view.strategy.layers;
  const uint32_t workers = view.strategy.workers;
  const StrategyCost cost(view.facts, workers, view.rates);
  std::string dot = "digraph strategy {\n  graph [label=" + Quoted({TitleOf(view)}) +
                    ", labelloc=t, fontname=monospace, fontsize=12];\n"
                    "  node [shape=box, style=\"rounded,filled\", fontname=monospace, "
                    "fontsize=12];\n  edge [arrowhead=none, fontname=monospace, fontsize=11];\n" +
                    Legend();
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layout output = LayoutsOf(layers[i].cut, splits[i], workers).output;
    dot += Box(NameOf(i), LinesOf(layers[i], cost.OfLayer(i, splits[i]).weight_floats, output),
               FillOf(splits[i], workers));
    for (const uint32_t input : layers[i].inputs) {
      dot += Edge(NameOf(input), NameOf(i), cost.OfConversion(input, splits[input], i, splits[i]));
    }
  }
  if (!layers.empty()) {
    const size_t last = layers.size() - 1;
    dot += Box("loss", {"loss", "takes " + Layout::OwnRows(workers).Shown()}, kColours[0].fill);
    dot += Edge(NameOf(last), "loss", cost.OfConversion(last, splits[last], kLoss, {}));
  }
  return dot + "}\n";
}

}  // namespace hdps
