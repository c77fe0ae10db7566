// Pools rows of a table.
#include <limits>

#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "tools/export/onnx/onnx_site.h"
#include "tools/export/onnx/onnx_tables.h"
#include "worker/model/feature_list.h"

namespace hdps {
namespace {

// Returns one vector of an example, [n, dim], as kernels/host/embedding_bag.cc pools its rows.
OnnxValue Pooled(const OnnxSite& site, const OnnxTables::Bags& bags, int64_t dim) {
  OnnxGraph& graph = site.graph;
  if (bags.weights.empty()) return graph.Reshape(bags.rows, {0, dim});
  const OnnxValue weighted = graph.Add("Mul", {bags.rows, graph.Unsqueeze(bags.weights, 2)});
  if (site.spec.pooling == Pooling::kSum) return graph.ReduceSum(weighted, 1);
  const OnnxValue none = graph.Add("Equal", {bags.weights, graph.Number(0)});
  const OnnxValue there = graph.Add("Where", {none, graph.Number(0), graph.Number(1)});
  const OnnxValue count = graph.ReduceSum(there, 1, /*keep=*/true);
  if (site.spec.pooling == Pooling::kMean) {
    const OnnxValue divisor = graph.Add("Max", {count, graph.Number(1)});
    return graph.Add("Div", {graph.ReduceSum(weighted, 1), divisor});
  }
  const OnnxValue lowest = graph.Number(std::numeric_limits<float>::lowest());
  const OnnxValue valued = graph.Add("Where", {graph.Unsqueeze(none, 2), lowest, weighted});
  const OnnxValue largest = graph.Add(
      "ReduceMax", {valued}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  return site.Masked(graph.Add("Greater", {count, graph.Number(0)}), largest);
}

}  // namespace

OnnxValue EmbeddingToOnnx(const OnnxSite& site) {
  if (!site.tables.inside()) {
    return site.graph.Input(site.name(), OnnxType::kFloat, {"n", site.width()});
  }
  const std::vector<uint32_t> features = site.Features();
  const bool side_by_side = site.spec.combine == Combine::kConcat;
  const int64_t dim =
      side_by_side ? site.width() / static_cast<int64_t>(features.size()) : site.width();
  std::vector<OnnxValue> pooled;
  for (const uint32_t feature : features) {
    const OnnxTables::Bags bags = site.tables.Of(site.table(), feature);
    site.graph.BeginPart("layers/" + site.name());
    pooled.push_back(Pooled(site, bags, dim));
  }
  return side_by_side ? site.graph.Concat(pooled, 1) : site.graph.Sum(pooled);
}

}  // namespace hdps
