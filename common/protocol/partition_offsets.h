// Writes where a job is in a topic as JSON: [[partition, offset], ...], and reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "common/protocol/checkpoints/json_numbers.h"
#include "common/protocol/manifest_parts.h"

namespace hdps {

// Adds the offsets to `json`, unless there are none.
template <typename Json>
void AddOffsets(const std::vector<PartitionOffset>& offsets, Json* json) {
  for (const PartitionOffset& at : offsets) (*json)["offsets"].push_back({at.partition, at.next});
}

// Throws std::invalid_argument unless each partition is there once, in order, with an offset.
template <typename Json>
std::vector<PartitionOffset> OffsetsIn(const Json& json) {
  std::vector<PartitionOffset> offsets;
  for (const Json& at : json.value("offsets", Json::array())) {
    offsets.push_back({WholeOf<uint32_t>(at.at(0)), WholeOf<int64_t>(at.at(1))});
    const PartitionOffset& last = offsets.back();
    const bool grows = offsets.size() < 2 || offsets[offsets.size() - 2].partition < last.partition;
    if (!grows || last.next < 0) throw std::invalid_argument("offsets of partitions out of order");
  }
  return offsets;
}

}  // namespace hdps
