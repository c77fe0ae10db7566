// Updates of dense tensors by an optimizer that needs each of them whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/job/table_spec.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/optimizer.h"

namespace hdps {

struct TensorChunk {
  Key key = 0;  // The tensor's number in the upper 32 bits.
  ChunkUpdate update;
};

// Updates the tensors that the chunks are of, each from its chunks in order; running averages,
// which are no parameters, chunk by chunk.
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
