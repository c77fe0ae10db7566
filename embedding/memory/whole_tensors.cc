// Chunks of tensors in order: sums over each tensor, then the update of its chunks.
#include "embedding/memory/whole_tensors.h"

#include <algorithm>
#include <cstddef>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/averages.h"

namespace hdps {

void UpdateChunks(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
                  std::vector<TensorChunk> chunks, TensorPeers& peers) {
  std::ranges::sort(chunks, {}, &TensorChunk::key);
  std::vector<Key> keys;
  std::vector<TensorSums> own;
  std::vector<float> directions;
  std::vector<ChunkUpdate> parameters;
  for (const TensorChunk& chunk : chunks) {
    const ChunkUpdate& u = chunk.update;
    if (const AveragedTensor* const averaged = AveragedOf(table, chunk.key)) {
      UpdateRow(RuleOf(rule, averaged), step, u.gradient, u.weights, u.state);
      continue;
    }
    directions.resize(directions.size() + u.weights.size());
    const std::span<float> direction = std::span(directions).last(u.weights.size());
    own.push_back(FindChunkDirection(rule, u, direction));
    keys.push_back(chunk.key);
    parameters.push_back(u);
  }
  const std::vector<TensorSums> of_tensors = peers.OfTensors(keys, own);
  const float* at = directions.data();
  for (size_t c = 0; c < parameters.size(); ++c) {
    const std::span<float> weights = parameters[c].weights;
    DescendChunk(rule, of_tensors[c], {at, weights.size()}, weights);
    at += weights.size();
  }
}

void UpdateTensors(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
                   std::vector<TensorChunk> chunks) {
  std::ranges::sort(chunks, {}, &TensorChunk::key);
  std::vector<ChunkUpdate> tensor;
  for (size_t c = 0; c < chunks.size(); ++c) {
    tensor.push_back(chunks[c].update);
    const bool ends = c + 1 == chunks.size() || chunks[c + 1].key >> 32 != chunks[c].key >> 32;
    if (!ends) continue;
    if (const AveragedTensor* const averaged = AveragedOf(table, chunks[c].key)) {
      for (const ChunkUpdate& u : tensor) {
        UpdateRow(RuleOf(rule, averaged), step, u.gradient, u.weights, u.state);
      }
    } else {
      UpdateTensor(rule, tensor);
    }
    tensor.clear();
  }
}

}  // namespace hdps
