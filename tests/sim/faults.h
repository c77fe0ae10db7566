// What is done to a cluster on purpose, and when.
#pragma once

#include <cstdint>
#include <set>

#include "common/net/node.h"

namespace hdps::sim {

struct Fault {
  enum class Kind : uint8_t {
    kKill,       // The process is gone; the launcher starts another.
    kPowerLoss,  // And what its machine has not synced is gone with it; `disk_too`: and the disk's.
    kLoss,       // As kKill, and nobody starts another.
    kStandstill,  // The process does nothing for a while, and then goes on.
    kPartition,   // `places` and the others do not hear each other for a while, or one side.
    kSlowDisk,    // What the process does on disk takes long.
    kFullDisk,    // What the process writes fails. For servers.
    kDrain,       // The launcher is told to stop: the job is saved and ends.
    kScale,       // So many more servers and workers; newcomers start `lasts` later.
    kJoin,        // One more process asks for `asks` (-1: any rank), of this job or of another.
    kStop,        // The same of a server or worker.
    kEnd,         // The launcher is killed, and every process with it.
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
