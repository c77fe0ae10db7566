// Splits vectors among heads, masks what is not seen, and puts the heads together again.
#include "tools/export/onnx/onnx_attention.h"

namespace hdps {
namespace {

// Returns [n, heads, F, head_dim].
OnnxValue Split(OnnxGraph& graph, const OnnxHeads& heads, const OnnxValue& x) {
  const OnnxValue split = graph.Reshape(x, {0, heads.vectors, heads.count, heads.head_dim});
  return graph.Transpose(split, {0, 2, 1, 3});
}

// Returns bool [F, F]: which vectors, in the columns, each one sees by its place.
OnnxValue EarlierMask(OnnxGraph& graph, const OnnxHeads& heads) {
  const OnnxValue places = graph.Ints(Range(0, heads.vectors));
  const OnnxValue self = graph.Reshape(places, {heads.vectors, 1});
  return graph.Add("LessOrEqual", {places, self});
}

}  // namespace

OnnxValue Attended(const OnnxSite& site, const OnnxHeads& heads, const OnnxValue& queries,
                   const OnnxValue& keys, const OnnxValue& values, const OnnxValue& mask) {
  OnnxGraph& graph = site.graph;
  const OnnxValue turned = graph.Transpose(Split(graph, heads, keys), {0, 1, 3, 2});
  OnnxValue scores = graph.Add("MatMul", {Split(graph, heads, queries), turned});
  if (heads.scale != 1) scores = graph.Add("Mul", {scores, graph.Number(heads.scale)});
  OnnxValue weights;
  if (mask.empty()) {
    weights = graph.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  } else {
    OnnxValue seen = graph.Reshape(mask, {0, 1, 1, heads.vectors});
    if (heads.earlier) seen = graph.Add("And", {seen, EarlierMask(graph, heads)});
    weights = site.MaskedSoftmax(seen, scores);
  }
  const OnnxValue attended = graph.Add("MatMul", {weights, Split(graph, heads, values)});
  return graph.Reshape(graph.Transpose(attended, {0, 2, 1, 3}),
                       {0, heads.vectors, heads.count * heads.head_dim});
}

}  // namespace hdps
