// What all layer kinds share when they are made.
#include "worker/model/layer.h"

#include <cmath>
#include <utility>

namespace hdps {

const char* LayerKindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kEmbedding:
      return "embedding";
    case LayerKind::kNumeric:
      return "numeric";
    case LayerKind::kConcat:
      return "concat";
    case LayerKind::kSum:
      return "sum";
    case LayerKind::kDense:
      return "dense";
    case LayerKind::kBias:
      return "bias";
    case LayerKind::kFm:
      return "fm";
    case LayerKind::kCross:
      return "cross";
    case LayerKind::kDot:
      return "dot";
  }
  return "unknown";
}

void CollectBags(const Pass& pass, uint32_t table, const std::vector<uint32_t>& features,
                 std::vector<Bags>* bags) {
  bags->clear();
  for (const uint32_t f : features) {
    const SparseColumn& column = pass.batch.sparse[f];
    bags->push_back({column.offsets, pass.tables[table].keys->row_index[f], column.weights});
  }
}

Status LayerSite::Mistake(const std::string& what) const {
  return {Code::kInvalidArgument, "model.layers[" + std::to_string(place) + "] '" + spec.name +
                                      "' (" + LayerKindName(spec.kind) + "): " + what};
}

Status LayerSite::ExpectInputs(size_t count) const {
  if (self().inputs.size() == count) return {};
  return Mistake("has " + std::to_string(self().inputs.size()) + " inputs, takes exactly " +
                 std::to_string(count));
}

size_t LayerSite::AddTensor(const std::string& part, std::vector<uint32_t> shape,
                            InitSpec init) const {
  DenseTensor tensor;
  tensor.name = spec.name + "." + part;
  tensor.shape = std::move(shape);
  tensor.init = init;
  if (!tensors.empty()) tensor.first_chunk = tensors.back().first_chunk + tensors.back().num_chunks;
  tensor.num_chunks = (tensor.size() + kDenseChunkFloats - 1) / kDenseChunkFloats;
  tensors.push_back(std::move(tensor));
  return tensors.back().first_chunk * kDenseChunkFloats;
}

InitSpec LayerSite::GlorotInit(uint32_t inputs, uint32_t outputs) {
  const double fans = static_cast<double>(inputs) + static_cast<double>(outputs);
  return {InitKind::kUniform, static_cast<float>(std::sqrt(6.0 / fans))};
}

Result<std::unique_ptr<Layer>> NewLayer(const LayerSite& site) {
  switch (site.spec.kind) {
    case LayerKind::kEmbedding:
      return NewEmbeddingLayer(site);
    case LayerKind::kNumeric:
      return NewNumericLayer(site);
    case LayerKind::kConcat:
      return NewConcatLayer(site);
    case LayerKind::kSum:
      return NewSumLayer(site);
    case LayerKind::kDense:
      return NewDenseLayer(site);
    case LayerKind::kBias:
      return NewBiasLayer(site);
    case LayerKind::kFm:
      return NewFmLayer(site);
    case LayerKind::kCross:
      return NewCrossLayer(site);
    case LayerKind::kDot:
      return NewDotLayer(site);
  }
  return site.Mistake("is of no known kind");
}

}  // namespace hdps
