// The state that a scheduler process leaves on disk so that another one can take over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "common/protocol/view.h"
#include "scheduler/job_record.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

struct SchedulerState {
  uint64_t job_digest = 0;
  uint32_t num_servers = 0, num_workers = 0;  // As the operator started the job.
  View view;
  uint32_t wanted_servers = 0, wanted_workers = 0;  // A requested scaling; 0: none.
  std::map<PeerId, MemberProcess> processes;
  std::map<PeerId, uint64_t> last_ids;         // Newest command number of each member.
  std::map<std::string, std::string> entries;  // Entries of the key-value store.
  JobState job;
  // SchedulerOptions::boot of the writing process. Views survive a crash of the machine; the job's
  // position within one is only valid as long as the machine stays up.
  std::string boot;
};

// Returns the path of scheduler.state in `out`, a JSON object. It is written at the beginning of
// each phase, before any member hears of it, as a temporary file that is then renamed.
std::string SchedulerStatePath(const std::string& out);
Status WriteSchedulerState(FileSystem& files, const std::string& out, const SchedulerState& state,
                           Survives survives = Survives::kMachine);
// Returns none if there is no such file. kCorruption says what is wrong with it, also if its parts
// contradict each other.
Result<std::optional<SchedulerState>> ReadSchedulerState(FileSystem& files, const std::string& out);

// Returns a contradiction within a state, as text; empty if there is none.
std::string ContradictionIn(const SchedulerState& state);

}  // namespace hdps
