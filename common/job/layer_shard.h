// What a layer's `shard` asks for.
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

// A split as far as it is said.
struct ShardWanted {
  uint32_t examples = 0;  // 0: what is left of the workers.
  uint32_t inputs = 1, columns = 1;
};

// What the tuples mean for a layer of the kind, or why they mean nothing.
// The number of workers and the widths are not looked at.
std::variant<ShardWanted, std::string> ReadShard(const LayerSpec& layer, const LayerRecord& record,
                                                 const ShardTuples& shard);

// What the layer can be cut into: as its record says, but for embeddings whose features are added
// up, which are not columns of the output.
LayerCut CutOfLayer(const LayerSpec& layer, const LayerRecord& record);

// A setting of a job that conflicts with layers that are cut over its workers.
struct CutConflict {
  std::string setting;  // "parallel.enable_parallel_optimizer"; empty: all goes together.
  std::string problem;  // What it does, to be followed by what cuts the layers.
};
CutConflict ConflictWithCuts(const Job& job);

// "[[2, 1], [1, 4]]"
std::string ShowTuples(const ShardTuples& tuples);

}  // namespace hdps
