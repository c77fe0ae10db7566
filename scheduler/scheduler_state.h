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

class StateLog;

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
  // SchedulerOptions::reign of the writing process, which is a part of the file's name.
  uint64_t reign = 0;
};

// Returns the path of scheduler.state in `out`, a JSON object; scheduler.state.12 of an elected
// scheduler of reign 12. It is written at the beginning of each phase, before any member hears of
// it: as a temporary file that is then renamed or, with a log, behind the state before. So no
// process writes to the file of a newer reign.
std::string SchedulerStatePath(const std::string& out, uint64_t reign = 0);
Status WriteSchedulerState(FileSystem& files, const std::string& out, const SchedulerState& state,
                           Survives survives = Survives::kMachine, StateLog* log = nullptr);
// Reads the newest state in the file of the newest reign. Returns none if there is no such file.
// kCorruption says what is wrong with it, also if its parts contradict each other.
Result<std::optional<SchedulerState>> ReadSchedulerState(FileSystem& files, const std::string& out);

// Returns the newest reign of which there is a file, 0 if there is none.
uint64_t NewestReign(FileSystem& files, const std::string& out);
// Removes the files of all reigns below `reign`, those beside them included, and with `own` also of
// `reign` itself.
Status RemoveSchedulerStates(FileSystem& files, const std::string& out, uint64_t reign, bool own);

// Returns a contradiction within a state, as text; empty if there is none.
std::string ContradictionIn(const SchedulerState& state);

}  // namespace hdps
