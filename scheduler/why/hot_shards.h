// Names the shards that keep servers busiest.
#pragma once

#include <string>

namespace hdps {

struct StatusReply;

// Returns "the busiest server has 2.10 times the work of the mean; hottest shards: 3 at server 0
// (41.0 % of its time), 7 at server 0 (20.0 %)"; empty if no server has told.
std::string HotShardsText(const StatusReply& status);

}  // namespace hdps
