// A block of a transformer over a sequence: attention, then an MLP, each added to what it reads and
// normalized.
#include <cmath>

#include "tools/export/onnx/onnx_attention.h"
#include "tools/export/onnx/onnx_site.h"

namespace hdps {
namespace {

// Tensors in the order of the record; the last two pairs are gain and shift of each part.
enum Tensor : size_t { kQuery, kKey, kValue, kOutput, kHidden, kWeight, kHiddenBias, kBias, kGain };

OnnxValue Normalized(const OnnxSite& site, size_t part, const OnnxValue& x) {
  constexpr float kEpsilon = 1e-5f;  // As worker/model/layers/transformer.cc has it.
  return site.graph.Add("LayerNormalization",
                        {x, site.Tensor(kGain + 2 * part), site.Tensor(kGain + 2 * part + 1)},
                        {{"epsilon", kEpsilon}});
}

// Returns what each vector attends to among those of its sequence, [n, F, dim].
OnnxValue Attention(const OnnxSite& site, const OnnxValue& x) {
  OnnxGraph& graph = site.graph;
  OnnxHeads heads;
  heads.count = static_cast<int64_t>(site.Number("heads"));
  heads.vectors = site.NumVectors();
  heads.head_dim = site.Dim() / heads.count;
  heads.scale = 1.0f / std::sqrt(static_cast<float>(heads.head_dim));
  heads.earlier = site.Word("sees") == "earlier";
  const auto product = [&](Tensor tensor) { return graph.Add("MatMul", {x, site.Tensor(tensor)}); };
  const OnnxValue attended = Attended(site, heads, product(kQuery), product(kKey), product(kValue),
                                      site.Mask(heads.vectors));
  return graph.Add("MatMul", {attended, site.Tensor(kOutput)});
}

OnnxValue Mlp(const OnnxSite& site, const OnnxValue& x) {
  OnnxGraph& graph = site.graph;
  const OnnxValue product = graph.Add("MatMul", {x, site.Tensor(kHidden)});
  const OnnxValue hidden =
      Activated(graph, site.activation(), graph.Add("Add", {product, site.Tensor(kHiddenBias)}));
  const OnnxValue out = graph.Add("MatMul", {hidden, site.Tensor(kWeight)});
  return graph.Add("Add", {out, site.Tensor(kBias)});
}

}  // namespace

OnnxValue TransformerToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const bool before = site.Word("norm") == "before";
  OnnxValue x = site.Vectors();
  for (const size_t part : {0, 1}) {
    const OnnxValue read = before ? Normalized(site, part, x) : x;
    const OnnxValue added = part == 0 ? Attention(site, read) : Mlp(site, read);
    x = graph.Add("Add", {x, added});
    if (!before) x = Normalized(site, part, x);
  }
  const OnnxValue mask = graph.Unsqueeze(site.Mask(site.NumVectors()), 2);
  return graph.Reshape(site.Masked(mask, x), {0, site.width()});
}

}  // namespace hdps
