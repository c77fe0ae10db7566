// Updates of dense tensors by an optimizer that needs each of them whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/optimizer.h"

namespace hdps {

struct AveragedTensor;
struct OptimizerSpec;
struct TableSpec;

struct TensorChunk {
  Key key = 0;  // The tensor's number in the upper 32 bits.
  ChunkUpdate update;
};

// Knows the other chunks of tensors of which a slice has only some.
class TensorPeers {
 public:
  virtual ~TensorPeers() = default;
  // Returns, for each of `keys` (ascending), the sums over all chunks of its tensor; own[i] are the
  // sums of chunk keys[i].
  virtual std::vector<TensorSums> OfTensors(std::span<const Key> keys,
                                            std::span<const TensorSums> own) = 0;
};

// Updates some chunks of tensors, in ascending order of their keys; `peers` knows the other chunks.
inline void UpdateChunks(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
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

// Updates whole tensors, each from its chunks in order. Running averages, which are no parameters,
// are updated chunk by chunk.
inline void UpdateTensors(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
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
