// Decides which member of a job a process becomes, from its flags and the variables of launchers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

using Variables = std::map<std::string, std::string>;  // The environment, without empty values.

// Returns the names of the variables that PlanMember() reads.
std::span<const std::string_view> MemberVariables();

// What the operator says in flags or in HDPS_ variables, which win over all others.
struct GivenMember {
  std::string role;  // --role; empty: other variables tell.
  std::optional<int32_t> rank;
  std::optional<uint32_t> servers, workers;
  bool scheduler = false;  // Whether the scheduler's address is given.
  std::string restart;     // --restart; empty: it depends on who started the process.
};

struct MemberPlan {
  Role role = Role::kWorker;
  int32_t rank = -1;  // Among the members of its role; -1: the scheduler picks one.
  std::optional<uint32_t> servers, workers;
  std::optional<uint32_t> number_here;  // Among the processes of the job on this machine.
  bool launched = false;                // MPI or Slurm has started it.
  bool one_machine = true;              // No launcher says that the job spans several.
  bool restart = false;                 // A member that dies is started again.
};

// Errors: kInvalidArgument names the variables, their values and what would be right, if none tells
// the role, if two contradict each other, or if the numbers do not fit the members of the job.
Result<MemberPlan> PlanMember(const GivenMember& given, const Variables& variables);

}  // namespace hdps
