// What whoever reaches a listener may take of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

// Defaults are far above what the members of a job need. A connection is unheard until a frame of
// it has passed or, with keys, until it is let in; without keys also until a long frame is on its
// way. An address is a host; all who come over ipc are one.
struct PeerLimits {
  uint32_t connections_max = 4096;              // Of all listeners of a process.
  uint32_t connections_per_address_max = 1024;  // Of those, from one address.
  uint32_t opened_per_second_max = 200;         // New ones of one address; twice as many at once.
  uint32_t unheard_max = 256;                   // Connections that are unheard.
  uint64_t unheard_bytes_max = 64 << 10;        // With keys: from one that is not let in yet.
  // Bytes that have arrived of one connection, or of all together, and wait to be handed out.
  uint64_t held_bytes_max = uint64_t{1} << 30;
  uint64_t all_held_bytes_max = uint64_t{4} << 30;
  uint32_t frames_per_second_max = 100'000;  // Of one connection; twice as many at once.
  uint32_t refused_per_second_max = 100;     // Likewise, of frames that are refused.
};

// Of all together `bytes` are held at most, and of one no more than that.
inline void HoldAtMost(uint64_t bytes, PeerLimits* limits) {
  limits->all_held_bytes_max = bytes;
  limits->held_bytes_max = std::min(limits->held_bytes_max, bytes);
}

// Why a connection was ended.
enum class PeerLimit : uint8_t {
  kConnections,
  kConnectionsOfAddress,
  kOpenedPerSecond,
  kUnheard,
  kUnheardBytes,
  kHeldBytes,
  kAllHeldBytes,
  kFramesPerSecond,
  kRefusedPerSecond
};
constexpr auto WordsOf(PeerLimit) {
  return EnumWords(PeerLimit::kConnections, "connections", PeerLimit::kConnectionsOfAddress,
                   "connections of an address", PeerLimit::kOpenedPerSecond,
                   "new connections a second", PeerLimit::kUnheard, "unheard connections",
                   PeerLimit::kUnheardBytes, "bytes without a key", PeerLimit::kHeldBytes,
                   "bytes held", PeerLimit::kAllHeldBytes, "bytes held of all",
                   PeerLimit::kFramesPerSecond, "frames a second", PeerLimit::kRefusedPerSecond,
                   "refused frames a second");
}

// How many connections each limit has ended.
struct EndedConnections {
  std::array<uint64_t, WordsOf(PeerLimit{}).size()> by_limit{};
  uint64_t& operator[](PeerLimit limit) { return by_limit[static_cast<size_t>(limit)]; }
  uint64_t operator[](PeerLimit limit) const { return by_limit[static_cast<size_t>(limit)]; }
};

}  // namespace hdps
