// Puts hot shards into words.
#include "scheduler/why/hot_shards.h"

#include <cstdio>

#include "common/protocol/status_messages.h"

namespace hdps {

std::string HotShardsText(const StatusReply& status) {
  constexpr size_t kShown = 4;
  if (status.hot_shards.empty()) return "";
  char number[64];
  std::snprintf(number, sizeof(number), "%.2f", status.busiest_over_mean);
  std::string text = "the busiest server has " + std::string(number) +
                     " times the work of the mean; hottest shards:";
  for (size_t s = 0; s < status.hot_shards.size() && s < kShown; ++s) {
    const HotShard& shard = status.hot_shards[s];
    std::snprintf(number, sizeof(number), "%.1f %%", 100 * shard.busy);
    text += (s == 0 ? " " : ", ") + std::to_string(shard.shard.value) + " at server " +
            std::to_string(shard.server.value) + " (" + number + (s == 0 ? " of its time)" : ")");
  }
  return text;
}

}  // namespace hdps
