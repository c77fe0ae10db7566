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
void UpdateChunks(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
                  std::vector<TensorChunk> chunks, TensorPeers& peers);

// Updates whole tensors, each from its chunks in order. Running averages, which are no parameters,
// are updated chunk by chunk.
void UpdateTensors(const TableSpec& table, const OptimizerSpec& rule, int64_t step,
                   std::vector<TensorChunk> chunks);

}  // namespace hdps
