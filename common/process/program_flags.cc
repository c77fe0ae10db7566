// The flags that the three programs share, and those that each has alone.
#include "common/process/program_flags.h"

#include <initializer_list>
#include <iterator>

#include "common/process/connections.h"
#include "common/process/http_flags.h"

namespace hdps {
namespace {

using Names = std::vector<std::string_view>;

void Add(std::initializer_list<std::string_view> more, Names* names) {
  names->insert(names->end(), more);
}

void AddFlagsOfMembers(Names* names) {
  Add({"scheduler", "rank", "servers", "workers", "threads", "elect_file"}, names);
}

}  // namespace

std::vector<std::string_view> FlagsOfProgram(Role role) {
  Names names = {"job",     "set",     "log",      "log_file", "pid_file", "die_with_parent",
                 "on_term", "leave_s", "insecure", "keys",     "faults"};
  names.insert(names.end(), std::begin(kLimitFlags), std::end(kLimitFlags));
  names.insert(names.end(), std::begin(kHttpFlags), std::end(kHttpFlags));
  switch (role) {
    case Role::kScheduler:
      Add({"out", "listen", "servers", "workers", "resume", "init", "address_file", "same_run",
           "print_config", "tensorboard", "elect", "elect_ttl_s", "elect_file"},
          &names);
      break;
    case Role::kServer:
      AddFlagsOfMembers(&names);
      Add({"listen", "spill_path", "expected_rows", "record"}, &names);
      break;
    case Role::kWorker:
      AddFlagsOfMembers(&names);
      Add({"collective_host", "insecure_collective", "gpu", "max_bad_rows"}, &names);
      break;
  }
  return names;
}

}  // namespace hdps
