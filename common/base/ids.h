// Integer types for the ids that must not be mixed up.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace hdps {

// An integer that converts to another integer type only explicitly.
template <typename Tag, typename Rep>
struct Id {
  Rep value{};
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using WorkerId = Id<struct WorkerTag, uint32_t>;    // Rank of a worker: 0..workers-1.
using ServerId = Id<struct ServerTag, uint32_t>;    // Rank of a server: 0..servers-1.
using ShardId = Id<struct ShardTag, uint32_t>;      // A slice of the key space, 0..shards-1.
using TableId = Id<struct TableTag, uint32_t>;      // Position of the table in Job::tables.
using Sequence = Id<struct SequenceTag, uint64_t>;  // Numbers one worker's pushes, from 0.
using ViewId = Id<struct ViewTag, uint64_t>;        // A generation of the membership; only grows.
using CommandId = Id<struct CommandTag, uint64_t>;  // Numbers the scheduler's commands, from 1.

// Identifies one incarnation of one process. It is drawn at random at start, so a restarted process
// is another peer. Only the scheduler has a fixed number that all know.
using PeerId = Id<struct PeerTag, uint64_t>;
inline constexpr PeerId kSchedulerPeer{1};

using Key = uint64_t;   // Hashed feature value; every bit pattern is a valid key.
using Clock = int64_t;  // The number of steps that a worker has finished.

enum class Role : uint8_t { kScheduler = 0, kServer = 1, kWorker = 2 };
const char* RoleName(Role role);  // "scheduler", "server", "worker"

}  // namespace hdps

template <typename Tag, typename Rep>
struct std::hash<hdps::Id<Tag, Rep>> {
  size_t operator()(const hdps::Id<Tag, Rep>& id) const { return std::hash<Rep>()(id.value); }
};
