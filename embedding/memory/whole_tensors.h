// Updates of dense tensors by an optimizer that needs each of them whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "embedding/memory/optimizer.h"

namespace hdps {

struct OptimizerSpec;
struct TableSpec;

struct TensorChunk {
  Key key = 0;  // The tensor's number in the upper 32 bits.
  ChunkUpdate update;
};

// Who knows the other chunks of the tensors of which one slice has only some.
class TensorPeers {
 public:
  virtual ~TensorPeers() = default;
  // own[i]: of the chunk keys[i], ascending. Gives those of the tensor of each of the keys.
  virtual std::vector<TensorSums> OfTensors(std::span<const Key> keys,
                                            std::span<const TensorSums> own) = 0;
};

// Updates some chunks of tensors, in ascending order of their keys, whose others are elsewhere.
void UpdateChunks(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
                  std::vector<TensorChunk> chunks, TensorPeers& peers);

// Updates the tensors that the chunks are of, each from its chunks in order; running averages,
// which are no parameters, chunk by chunk.
void UpdateTensors(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
                   std::vector<TensorChunk> chunks);

}  // namespace hdps
