// The kinds of layers that only a cut model has: conversions, and products of parts of the inputs.
#pragma once

#include "common/base/status.h"
#include "common/job/layers/layer_record.h"
#include "worker/exchange/collective.h"
#include "worker/parallel/matrix_part.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// What the conversions of one rank's model work with. Set before each pass; the first failure of a
// pass stays in `status`, and nothing is exchanged behind it.
struct RankMeeting {
  Collective* group = nullptr;  // Of all ranks of the strategy.
  StepRows rows;                // Of the pass.
  Status status;
  uint64_t bytes_sent = 0;  // Since the model was made.
};

// Adds both kinds for a rank's graph, whose conversions are all known.
Status AddRankLayers(const RankGraph& graph, LayerRegistry* layers);

}  // namespace hdps
