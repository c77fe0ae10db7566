// Layouts of the matrices of a cut layer.
#include "common/parallel/strategy.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {

LayerLayouts LayoutsOf(LayerCut cut, const LayerSplit& split, uint32_t workers) {
  CHECK_EQ(workers % split.product(), 0u);
  const uint32_t a = split.examples, b = split.inputs, c = split.columns;
  const uint32_t rest = static_cast<uint32_t>(workers / split.product());
  using enum AxisRole;
  LayerLayouts layouts;
  if (cut == LayerCut::kMatrix) {
    layouts.input = Layout({{kRows, a}, {kColumns, b}, {kCopies, c}, {kCopies, rest}});
    layouts.input_gradient = Layout({{kRows, a}, {kColumns, b}, {kSums, c}, {kCopies, rest}});
    layouts.product = Layout({{kRows, a}, {kSums, b}, {kColumns, c}, {kCopies, rest}});
    layouts.product_gradient = Layout({{kRows, a}, {kCopies, b}, {kColumns, c}, {kCopies, rest}});
    layouts.output = Layout({{kRows, a}, {kRows, b}, {kColumns, c}, {kCopies, rest}});
    layouts.output_gradient = layouts.output;
    return layouts;
  }
  if (cut == LayerCut::kFeatureSums && c > 1) {
    layouts.output = layouts.product = Layout({{kSums, c}, {kCopies, rest}});
    layouts.input = layouts.input_gradient = Layout::Copies(workers);
    layouts.output_gradient = layouts.product_gradient = Layout::Copies(workers);
    return layouts;
  }
  CHECK_EQ(b, 1u) << "only a dense layer has parts of its inputs";
  const Layout all({{kRows, a}, {kColumns, c}, {kCopies, rest}});
  return {all, all, all, all, all, all};
}

bool Strategy::data_parallel() const {
  return std::ranges::all_of(
      layers, [this](const LayerSplit& split) { return split == OwnRowsSplit(workers); });
}

}  // namespace hdps
