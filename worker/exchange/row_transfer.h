// Reads whole rows from the servers and stores them there, outside of steps.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

enum class PullMode : uint8_t;

// Reads rows[i] [keys * row_floats] of tables[i]; for the requirements on `tables` see
// KeySplit::Compute. Waits for the replies of the servers of the channel's view.
Status ReadRows(NodeChannel& channel, std::span<const KeysOfTable> tables, Clock clock,
                PullMode mode, std::span<const std::span<float>> rows);
// Stores rows that include the updates of the clocks before `clock`, and waits for the replies.
Status StoreRows(NodeChannel& channel, std::span<const KeysOfTable> tables, Clock clock,
                 std::span<const std::span<const float>> rows);

}  // namespace hdps
