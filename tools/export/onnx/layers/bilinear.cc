// Bilinear interaction of all pairs of vectors: v_a W times v_b, element by element.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {
namespace {

// Multiplies vector m of x, [n, M, dim], by matrix m of the layer.
OnnxValue TimesOwnMatrix(const OnnxSite& site, const OnnxValue& x) {
  // The matrices stand side by side in the layer's tensor, and behind each other here.
  const OnnxTensor& weight = site.TensorFloats(0);
  const int64_t dim = weight.shape[0], columns = weight.shape[1], count = columns / dim;
  std::vector<float> matrices;
  for (int64_t m = 0; m < count; ++m) {
    for (int64_t row = 0; row < dim; ++row) {
      const auto begin = weight.floats.begin() + row * columns + m * dim;
      matrices.insert(matrices.end(), begin, begin + dim);
    }
  }
  const OnnxValue weights = site.graph.Floats(weight.name, {count, dim, dim}, matrices);
  return EachByItsMatrix(site.graph, x, weights);
}

}  // namespace

OnnxValue BilinearToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue vectors = site.Vectors();
  const int64_t count = site.NumVectors();
  const VectorPairs pairs(count);
  OnnxValue left;
  if (site.Word("matrices") == "interaction") {
    left = TimesOwnMatrix(site, graph.Gather(vectors, 1, pairs.first));
  } else if (site.Word("matrices") == "all") {
    left = graph.Gather(graph.Add("MatMul", {vectors, site.Tensor(0)}), 1, pairs.first);
  } else {
    // The last vector is the first of no pair.
    const OnnxValue firsts = graph.Slice(vectors, 1, 0, count - 1);
    left = graph.Gather(TimesOwnMatrix(site, firsts), 1, pairs.first);
  }
  const OnnxValue products = graph.Add("Mul", {left, graph.Gather(vectors, 1, pairs.second)});
  return graph.Reshape(products, {0, site.width()});
}

}  // namespace hdps
