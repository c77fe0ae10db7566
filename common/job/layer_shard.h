// Interprets the setting `shard` of a layer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/job/layers/layer_record.h"

namespace hdps {

struct Job;
struct LayerSpec;

using ShardTuples = std::vector<std::vector<uint32_t>>;

// The requested split, as far as it is given.
struct ShardWanted {
  uint32_t examples = 0;  // 0 for all that is left of the workers.
  uint32_t inputs = 1, columns = 1;
};

// Returns the split that the tuples mean for a layer of this kind, or why they are invalid. Does
// not check the number of workers and the widths.
std::variant<ShardWanted, std::string> ReadShard(const LayerSpec& layer, const LayerRecord& record,
                                                 const ShardTuples& shard);

// Returns how the layer can be cut: as its record says, except for embeddings that sum their
// features, where features are not columns of the output.
LayerCut CutOfLayer(const LayerSpec& layer, const LayerRecord& record);

// A setting of a job that conflicts with layers that are cut over workers.
struct CutConflict {
  std::string setting;  // "parallel.enable_parallel_optimizer"; empty if nothing conflicts.
  // The effect of the setting; the message continues with what cuts the layers.
  std::string problem;
};
CutConflict ConflictWithCuts(const Job& job);

// Returns "[[2, 1], [1, 4]]".
std::string ShowTuples(const ShardTuples& tuples);

}  // namespace hdps
