// Defines the faults of a simulated cluster and their times.
#pragma once

#include <cstdint>
#include <set>

#include "common/net/node.h"

namespace hdps::sim {

struct Fault {
  enum class Kind : uint8_t {
    kKill,  // The process dies; the launcher starts another.
    // Like kKill, and the machine's unsynced data is lost; `disk_too`: also the disk's.
    kPowerLoss,
    kLoss,        // Like kKill, but no other is started.
    kStandstill,  // The process pauses for a while.
    // `places` and the others cannot reach each other for a while, or only one way.
    kPartition,
    kSlowDisk,  // The disk is slow for the process.
    kFullDisk,  // The writes of the process fail. For servers.
    kDrain,     // The launcher is told to stop: the job saves and ends.
    kScale,     // Asks for so many more servers and workers; new processes start `lasts` later.
    // One more process asks for rank `asks` (-1: any), of this job or another.
    kJoin,
    // A process is told to leave alone: a member has `lasts` to hand over. The launcher starts
    // another.
    kLeave,
    kStop,  // A server or worker is told to stop.
    kEnd,   // The launcher is killed with all its processes.
  };
  TimeMs at = 0;
  Kind kind = Kind::kKill;
  Role role = Role::kServer;
  uint32_t rank = 0;
  TimeMs lasts = 0;
  std::set<uint64_t> places = {};
  bool out = true, in = true;
  bool disk_too = false;
  int32_t servers = 0, workers = 0;
  int32_t asks = -1;
  bool other_job = false;
};

}  // namespace hdps::sim
