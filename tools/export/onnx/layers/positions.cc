// Adds a learned vector to each vector of a sequence, by its position from the end.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue PositionsToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const int64_t dim = site.Dim(), vectors = site.width() / dim;
  OnnxValue sequence = site.Vectors();
  if (site.num_inputs() == 2) {
    // The follower is the last vector of each example.
    const OnnxValue follower = graph.Unsqueeze(site.Input(1), 1);
    const OnnxValue last = graph.Unsqueeze(site.LastMask(vectors), 2);
    sequence = graph.Add("Where", {last, follower, graph.Concat({sequence, follower}, 1)});
  }
  // Vector p of an example with c of them has position P - c + p; those behind it are masked.
  const OnnxValue ends = graph.Ints(Range(vectors, vectors));
  const OnnxValue position = graph.Add("Sub", {ends, site.Counts()});
  const OnnxValue bounded = graph.Add("Min", {position, graph.Ints({vectors - 1})});
  const OnnxValue learned = graph.Add("Gather", {site.Tensor(0), bounded}, {{"axis", int64_t{0}}});
  const OnnxValue sum = graph.Add("Add", {sequence, learned});
  const OnnxValue mask = graph.Unsqueeze(site.Mask(vectors), 2);
  return graph.Reshape(site.Masked(mask, sum), {0, site.width()});
}

}  // namespace hdps
