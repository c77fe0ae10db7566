// Makes the command line of the program that a member becomes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/member/member_plan.h"

namespace hdps {

struct MemberFlagsGiven {
  std::map<std::string, std::string> flags;  // Flags of the command line, by name.
  // Flags whose values come from the environment, where the program finds them too.
  std::set<std::string> from_environment;
  std::string out;        // --out, wherever it came from; may be empty.
  std::string scheduler;  // --scheduler likewise.
  std::string own_host;   // An address of this machine, as other machines reach it.

  bool Has(const std::string& name) const {
    return flags.contains(name) || from_environment.contains(name);
  }
};

// Returns the file through which members find the scheduler: the one that --scheduler names, or one
// in --out if it is not given; empty if it gives an address.
std::string AddressFile(const MemberFlagsGiven& given);
// Returns the name under which a member logs: "scheduler", "server_1", or "worker" without a rank.
std::string MemberName(const MemberPlan& plan);
// Returns the arguments of the role's program. Flags of other roles are left out. Errors:
// kInvalidArgument if --out is missing where the scheduler is found through it.
Result<std::vector<std::string>> ProgramArguments(const MemberPlan& plan,
                                                  const MemberFlagsGiven& given);

}  // namespace hdps
