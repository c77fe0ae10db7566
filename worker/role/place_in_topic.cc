// Puts together what the servers know of the steps' messages.
#include "worker/role/place_in_topic.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/manifest_parts.h"

namespace hdps {

Status FindInTopic(const PlaceStand& stand, Clock since, EpochPosition* position) {
  const auto& known = stand.messages;
  // The end of a step is the begin of the next one.
  const auto end_of = [&](Clock step) -> std::optional<std::vector<PartitionOffset>> {
    if (const auto at = known.find(step); at != known.end()) return EndsOf(at->second);
    if (const auto next = known.find(step + 1); next != known.end()) return BeginsOf(next->second);
    return std::nullopt;
  };
  const auto unknown = [](Clock step) {
    return Status(Code::kCorruption, "no server says which messages of the topic step " +
                                         std::to_string(step) + " of this worker has");
  };
  if (const auto at = known.find(position->clock); at != known.end()) {
    position->offsets = BeginsOf(at->second);
  } else if (position->clock > since) {
    std::optional<std::vector<PartitionOffset>> begin = end_of(position->clock - 1);
    if (!begin) return unknown(position->clock - 1);
    position->offsets = *std::move(begin);
  }
  for (Clock step = position->clock; step < stand.reached; ++step) {
    std::optional<std::vector<PartitionOffset>> end = end_of(step);
    if (!end) return unknown(step);
    position->step_ends.push_back(*std::move(end));
  }
  return {};
}

}  // namespace hdps
