// Whole rows to and from the servers, outside the steps.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

enum class PullMode : uint8_t;

// rows[i] [keys * row_floats] of tables[i]; see KeySplit::Compute for what `tables` may be. Waits
// for the answers of the servers of the channel's view.
Status ReadRows(NodeChannel& channel, std::span<const KeysOfTable> tables, Clock clock,
                PullMode mode, std::span<const std::span<float>> rows);
// The rows hold the updates of the clocks before `clock`.
Status StoreRows(NodeChannel& channel, std::span<const KeysOfTable> tables, Clock clock,
                 std::span<const std::span<const float>> rows);

}  // namespace hdps
