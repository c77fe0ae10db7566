// The kinds of layers that only a cut model has: conversions, and products of parts of the inputs.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/job/layers/layer_record.h"
#include "worker/parallel/matrix_part.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// What the conversions of one rank's model work with.
struct RankMeeting {
  std::vector<StepRows> rows;  // [lanes] of the step at hand.
};

// Adds both kinds for a rank's graph, whose conversions are all known.
Status AddRankLayers(const RankGraph& graph, LayerRegistry* layers);

}  // namespace hdps
