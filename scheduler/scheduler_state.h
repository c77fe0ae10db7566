// What a scheduler leaves on disk so that another process of it can go on where it was.
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
  uint32_t num_servers = 0, num_workers = 0;  // As the operator has started the job.
  View view;
  uint32_t wanted_servers = 0, wanted_workers = 0;  // Somebody has asked for; 0: nobody has.
  std::map<PeerId, MemberProcess> processes;
  std::map<PeerId, uint64_t> last_ids;         // Of the commands to each member.
  std::map<std::string, std::string> entries;  // Of the store in which ranks find each other.
  JobState job;
  // SchedulerOptions::boot of who wrote it. Views survive a crash of the machine; where the job
  // stands in one is known for as long as the machine is up.
  std::string boot;
};

// The state of the run in `out` is in the file scheduler.state there: a JSON object. It is written
// at the beginning of each phase, before anybody hears of it, beside the old one, and renamed.
std::string SchedulerStatePath(const std::string& out);
Status WriteSchedulerState(FileSystem& files, const std::string& out, const SchedulerState& state,
                           Survives survives = Survives::kMachine);
// None where there is no such file. kCorruption says what is wrong with it, also where its parts
// contradict each other.
Result<std::optional<SchedulerState>> ReadSchedulerState(FileSystem& files, const std::string& out);

// What of a state does not agree with the rest of it, in words; empty where all does.
std::string ContradictionIn(const SchedulerState& state);

}  // namespace hdps
