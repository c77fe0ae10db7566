// Gives the rows of one feature's keys, in order: of more than its length, the last ones.
#include "tools/export/onnx/onnx_site.h"
#include "tools/export/onnx/onnx_tables.h"
#include "worker/model/feature_list.h"

namespace hdps {
namespace {

// Without tables the model has the vectors as an input, and how many of them each example has.
OnnxValue SequenceInput(const OnnxSite& site, int64_t length) {
  OnnxGraph& graph = site.graph;
  const OnnxValue counts = graph.Input(site.name() + ".count", OnnxType::kInt64, {"n", 1});
  // No number of a caller may lead out of the sequence.
  const OnnxValue least = graph.Add("Max", {counts, graph.Ints({0})});
  site.SetCounts(graph.Add("Min", {least, graph.Ints({length})}));
  return graph.Input(site.name(), OnnxType::kFloat, {"n", site.width()});
}

}  // namespace

OnnxValue SequenceToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const auto length = static_cast<int64_t>(site.Number("length"));
  const int64_t dim = site.width() / length;
  if (!site.tables.inside()) return SequenceInput(site, length);
  const uint32_t feature = site.Features().at(0);
  const OnnxTables::Bags bags = site.tables.Of(site.table(), feature);
  graph.BeginPart("layers/" + site.name());
  const OnnxValue none = graph.Add("Equal", {bags.weights, graph.Number(0)});
  const OnnxValue there = graph.Add("Where", {none, graph.Ints({0}), graph.Ints({1})});
  const OnnxValue total = graph.ReduceSum(there, 1, /*keep=*/true);
  const OnnxValue counts = graph.Add("Min", {total, graph.Ints({length})});
  site.SetCounts(counts);
  // Zeros behind the rows, so that every example has `length` of them from its first one on.
  const OnnxValue weighted = graph.Add("Mul", {bags.rows, graph.Unsqueeze(bags.weights, 2)});
  const OnnxValue padded =
      graph.Add("Pad", {weighted, graph.Ints({0, 0, 0, 0, length, 0}), graph.Number(0)});
  const OnnxValue first = graph.Add("Sub", {total, counts});
  const OnnxValue places = graph.Add("Add", {first, graph.Ints(Range(0, length))});
  const OnnxValue vectors =
      graph.Add("GatherND", {padded, graph.Unsqueeze(places, 2)}, {{"batch_dims", int64_t{1}}});
  const OnnxValue mask = graph.Unsqueeze(site.Mask(length), 2);
  return graph.Reshape(site.Masked(mask, vectors), {0, length * dim});
}

}  // namespace hdps
