// Boxes and edges of a model, coloured by what is cut.
#include <algorithm>
#include <array>

#include "common/base/byte_count.h"
#include "common/base/show_number.h"
#include "common/planning/strategy_cost.h"
#include "tools/plan/layered_layout.h"
#include "tools/plan/strategy_view.h"

namespace hdps {
namespace {

// Pixels. A character is as wide as one of a fixed width of this size may be.
constexpr double kFont = 12, kCharacter = 7.3, kLine = 16, kMargin = 16, kGap = 18;
constexpr double kBoxHeight = 3 * kLine + 8, kLabelHeight = 2 * kLine, kRowGap = 14;

std::string Px(double value) { return ShowNumber("%.1f", value); }

std::string Escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

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

// A box, a label of an edge, or where a long edge passes.
struct Item {
  std::vector<std::string> lines;
  const char* fill = nullptr;  // Null: no box.
};

// Boxes stand in even rows, labels of edges in odd ones: so much deeper than the deepest input.
class Picture {
 public:
  explicit Picture(const StrategyView& view)
      : view_(view), cost_(view.facts, view.strategy.workers, view.rates) {}

  std::string Draw() {
    AddBoxes();
    for (size_t i = 0; i < layers().size(); ++i) {
      for (const uint32_t input : layers()[i].inputs) Join(input, i);
    }
    AddLoss();
    Number();
    PlaceRows(kGap, &rows_);
    return Svg();
  }

 private:
  struct At {
    uint32_t row = 0, place = 0;
  };
  const std::vector<LayerFacts>& layers() const { return view_.facts.layers; }
  const LayerSplit& SplitOf(size_t layer) const { return view_.strategy.layers[layer]; }

  At Add(uint32_t row, Item item) {
    if (rows_.size() <= row) {
      rows_.resize(row + 1);
      items_.resize(row + 1);
    }
    RowItem& placed = rows_[row].emplace_back();
    for (const std::string& line : item.lines) {
      placed.width = std::max(placed.width, kCharacter * static_cast<double>(line.size()));
    }
    if (item.fill != nullptr) placed.width += 16;
    items_[row].push_back(std::move(item));
    return {row, static_cast<uint32_t>(rows_[row].size() - 1)};
  }

  void AddBoxes() {
    for (size_t i = 0; i < layers().size(); ++i) {
      const LayerFacts& layer = layers()[i];
      uint32_t row = 0;
      for (const uint32_t input : layer.inputs) row = std::max(row, boxes_[input].row + 2);
      std::string sizes = layer.kind + " " + std::to_string(layer.width);
      if (layer.cut == LayerCut::kMatrix) {
        sizes = layer.kind + " " + std::to_string(layer.input_width) + " x " +
                std::to_string(layer.width);
      }
      const double floats = cost_.OfLayer(i, SplitOf(i)).weight_floats;
      std::string below = "no weights";
      if (!layer.table.empty()) below = "rows of " + layer.table;
      if (floats > 0) below = Bytes(sizeof(float) * floats) + " of weights each";
      const uint32_t workers = view_.strategy.workers;
      const LayerLayouts layouts = LayoutsOf(layer.cut, SplitOf(i), workers);
      boxes_.push_back(
          Add(row, {{layer.name + ": " + sizes, "gives " + layouts.output.Shown(), below},
                    FillOf(SplitOf(i), workers)}));
    }
  }

  static std::string Bytes(double bytes) { return ShowByteCount(static_cast<uint64_t>(bytes)); }

  static std::vector<std::string> LabelOf(const ConversionCost& cost) {
    if (cost.forward_bytes + cost.backward_bytes == 0) return {};
    return {std::string(cost.forward) + " " + Bytes(cost.forward_bytes),
            std::string("back ") + cost.backward + " " + Bytes(cost.backward_bytes)};
  }

  // From a box down to another, through an item in each row between; the last but one is the label.
  void Lead(At from, At to, const std::vector<std::string>& label) {
    At above = from;
    for (uint32_t row = from.row + 1; row <= to.row; ++row) {
      At next = to;
      if (row < to.row) next = Add(row, {row + 1 == to.row ? label : std::vector<std::string>()});
      joined_.emplace_back(above, next);
      above = next;
    }
  }

  void Join(uint32_t input, size_t layer) {
    Lead(boxes_[input], boxes_[layer],
         LabelOf(cost_.OfConversion(input, SplitOf(input), layer, SplitOf(layer))));
  }

  void AddLoss() {
    if (layers().empty()) return;
    const size_t last = layers().size() - 1;
    const At loss = Add(boxes_[last].row + 2,
                        {{"loss", "takes " + Layout::OwnRows(view_.strategy.workers).Shown(), ""},
                         kColours[0].fill});
    Lead(boxes_[last], loss, LabelOf(cost_.OfConversion(last, SplitOf(last), kLoss, {})));
  }

  // Tells the rows who is joined, and keeps who was who: rows are sorted when they are placed.
  void Number() {
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      for (uint32_t i = 0; i < rows_[r].size(); ++i) rows_[r][i].item = i;
    }
    for (const auto& [above, below] : joined_) {
      rows_[above.row][above.place].below.push_back(below.place);
      rows_[below.row][below.place].above.push_back(above.place);
    }
  }

  static double HeightOf(size_t row) { return row % 2 == 0 ? kBoxHeight : kLabelHeight; }

  double TopOf(size_t row) const {
    double top = kMargin + 2 * kLine + static_cast<double>(kColours.size()) * kLine;
    for (size_t r = 0; r < row; ++r) top += HeightOf(r) + kRowGap;
    return top;
  }

  static std::string Text(double x, double y, const std::string& text, const char* anchor) {
    return "<text x='" + Px(x) + "' y='" + Px(y) + "' text-anchor='" + anchor + "'>" +
           Escaped(text) + "</text>\n";
  }
  static std::string Line(double x1, double y1, double x2, double y2) {
    return "<line x1='" + Px(x1) + "' y1='" + Px(y1) + "' x2='" + Px(x2) + "' y2='" + Px(y2) +
           "'/>\n";
  }
  static std::string Rectangle(double x, double y, double width, double height, const char* fill) {
    return "<rect x='" + Px(x) + "' y='" + Px(y) + "' width='" + Px(width) + "' height='" +
           Px(height) + "' rx='4' fill='" + fill + "'/>\n";
  }

  // Where lines end at a row: at the edge of a box or a label, through everything else.
  std::string DrawItem(size_t r, const RowItem& placed) const {
    const Item& item = items_[r][placed.item];
    const double top = TopOf(r), x = kMargin + placed.x;
    std::string svg;
    if (item.lines.empty()) return Line(x, top, x, top + HeightOf(r));
    if (item.fill != nullptr) {
      svg += Rectangle(x - placed.width / 2, top, placed.width, HeightOf(r), item.fill);
    }
    for (size_t l = 0; l < item.lines.size(); ++l) {
      svg += Text(x, top + kLine * static_cast<double>(l + 1) - 2 + (item.fill ? 2 : 0),
                  item.lines[l], "middle");
    }
    return svg;
  }

  std::string Svg() const {
    double width = 0;
    std::string body;
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (const RowItem& item : rows_[r]) {
        width = std::max(width, item.x + item.width / 2);
        for (const uint32_t below : item.below) {
          body += Line(kMargin + item.x, TopOf(r) + HeightOf(r), kMargin + rows_[r + 1][below].x,
                       TopOf(r + 1));
        }
        body += DrawItem(r, item);
      }
    }
    std::string head = Text(kMargin, kMargin + kLine - 4, Title(), "start");
    width = std::max(width, kCharacter * static_cast<double>(Title().size()));
    for (size_t c = 0; c < kColours.size(); ++c) {
      const double top = kMargin + kLine * static_cast<double>(c + 1);
      head += Rectangle(kMargin, top + 2, 12, 12, kColours[c].fill) +
              Text(kMargin + 20, top + 12, kColours[c].meaning, "start");
    }
    const std::string size_x = Px(width + 2 * kMargin);
    const std::string size_y = Px(TopOf(rows_.size()) - kRowGap + kMargin);
    return "<svg xmlns='http://www.w3.org/2000/svg' width='" + size_x + "' height='" + size_y +
           "' viewBox='0 0 " + size_x + " " + size_y + "' font-family='monospace' font-size='" +
           Px(kFont) +
           "'>\n<style>line { stroke: #667; } rect { stroke: #667; stroke-width: 0.6; }</style>\n"
           "<rect x='0' y='0' width='100%' height='100%' fill='white'/>\n" +
           head + body + "</svg>\n";
  }

  std::string Title() const {
    const StrategyTotal total = TotalOf(view_.facts, view_.strategy, view_.rates);
    return std::to_string(view_.strategy.workers) + " workers, " +
           std::to_string(view_.facts.batch) + " examples a step: about " +
           ShowNumber("%.3g ms", 1e3 * total.seconds) + ", " + Bytes(total.memory_bytes) +
           " a worker";
  }

  const StrategyView& view_;
  const StrategyCost cost_;
  ItemRows rows_;
  std::vector<std::vector<Item>> items_;  // In the order in which they were added.
  std::vector<At> boxes_;                 // [layers]
  std::vector<std::pair<At, At>> joined_;
};

}  // namespace

std::string StrategySvg(const StrategyView& view) { return Picture(view).Draw(); }

}  // namespace hdps
