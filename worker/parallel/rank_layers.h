// Kinds of layers that only a cut model has: conversions, and products of a part of the inputs.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/job/layers/layer_record.h"
#include "worker/parallel/matrix_part.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// Data that the conversions of one rank's model share.
struct LaneRows {
  std::vector<StepRows> rows;  // [lanes] of the current step.
};

// Adds both kinds for a rank's graph. Requires: its conversions are complete.
Status AddRankLayers(const RankGraph& graph, LayerRegistry* layers);

}  // namespace hdps
