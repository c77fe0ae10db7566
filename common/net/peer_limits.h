// Limits the memory that peers of a listener can take.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

// Defaults are far above what the members of a job need. How often somebody connects or sends, and
// from where, is left to a firewall (docs/how_to/keys.md).
struct PeerLimits {
  uint32_t connections_max = 4096;  // Of all listeners of a process.
  // Bytes that have arrived of one connection, or of all together, and wait to be handed out.
  uint64_t held_bytes_max = uint64_t{1} << 30;
  uint64_t all_held_bytes_max = uint64_t{4} << 30;
  uint32_t refused_max = 1000;  // Frames of one connection that are refused.
};

// Of all together `bytes` are held at most, and of one no more than that.
inline void HoldAtMost(uint64_t bytes, PeerLimits* limits) {
  limits->all_held_bytes_max = bytes;
  limits->held_bytes_max = std::min(limits->held_bytes_max, bytes);
}

// Why a connection was ended.
enum class PeerLimit : uint8_t { kConnections, kHeldBytes, kAllHeldBytes, kRefused, kParts };
constexpr auto WordsOf(PeerLimit) {
  return EnumWords(PeerLimit::kConnections, "connections", PeerLimit::kHeldBytes, "bytes held",
                   PeerLimit::kAllHeldBytes, "bytes held of all", PeerLimit::kRefused,
                   "refused frames", PeerLimit::kParts,
                   "parts of a message or bytes of a handshake");
}

// How many connections each limit has ended.
struct EndedConnections {
  std::array<uint64_t, WordsOf(PeerLimit{}).size()> by_limit{};
  uint64_t& operator[](PeerLimit limit) { return by_limit[static_cast<size_t>(limit)]; }
  uint64_t operator[](PeerLimit limit) const { return by_limit[static_cast<size_t>(limit)]; }
};

}  // namespace hdps
