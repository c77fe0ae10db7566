// Passes on the flags of one role, and adds what the launcher has told.
#include "tools/member/program_words.h"

#include <utility>

#include "common/net/address.h"
#include "common/platform/file_system.h"
#include "common/process/program_flags.h"
#include "common/protocol/locate/scheduler_locator.h"

namespace hdps {
namespace {

// Collects the arguments; a flag is there once.
class Arguments {
 public:
  explicit Arguments(const MemberFlagsGiven& given) : given_(given) {}

  void Set(const std::string& name, const std::string& value) { values_[name] = value; }
  void Set(const std::string& name, std::optional<uint32_t> value) {
    if (value) Set(name, std::to_string(*value));
  }
  // Sets a flag that is given neither on the command line nor in the environment.
  void SetUnlessGiven(const std::string& name, const std::string& value) {
    if (!given_.Has(name)) Set(name, value);
  }
  std::vector<std::string> Written() const {
    std::vector<std::string> written;
    for (const auto& [name, value] : values_) written.push_back("--" + name + "=" + value);
    return written;
  }

 private:
  const MemberFlagsGiven& given_;
  std::map<std::string, std::string> values_;
};

Status NeedOut(const std::string& out) {
  if (!out.empty()) return {};
  return Status(Code::kInvalidArgument,
                "--out is missing; give the folder that all members see, where the scheduler "
                "leaves its address, or --scheduler=ADDRESS");
}

// The scheduler listens where members are told to dial it, and leaves its address in --out.
void PlaceScheduler(const MemberPlan& plan, const MemberFlagsGiven& given, Arguments* arguments) {
  const std::string file = AddressFile(given);
  if (!file.empty()) arguments->SetUnlessGiven("address_file", file);
  const bool dialed = ParseAddress(given.scheduler).ok();
  const std::string host = plan.one_machine ? "127.0.0.1" : given.own_host;
  arguments->SetUnlessGiven("listen", dialed ? given.scheduler : "tcp://" + host + ":0");
}

void PlaceMember(const MemberPlan& plan, const MemberFlagsGiven& given, Arguments* arguments) {
  arguments->Set("rank", std::to_string(plan.rank));
  arguments->SetUnlessGiven("scheduler", std::string(kFileScheme) + AddressFile(given));
  if (plan.role == Role::kServer) {
    if (!plan.one_machine) {
      arguments->SetUnlessGiven("listen", "tcp://" + given.own_host + ":0");
    }
    return;
  }
  if (!plan.one_machine) arguments->SetUnlessGiven("collective_host", given.own_host);
  if (plan.number_here) {
    arguments->SetUnlessGiven("gpu", std::to_string(*plan.number_here));
  }
}

}  // namespace

std::string AddressFile(const MemberFlagsGiven& given) {
  if (given.scheduler.empty()) return JoinPath(given.out, "scheduler.address");
  if (!given.scheduler.starts_with(kFileScheme)) return "";
  return given.scheduler.substr(kFileScheme.size());
}

std::string MemberName(const MemberPlan& plan) {
  const std::string role = RoleName(plan.role);
  return plan.rank < 0 ? role : role + "_" + std::to_string(plan.rank);
}

Result<std::vector<std::string>> ProgramArguments(const MemberPlan& plan,
                                                  const MemberFlagsGiven& given) {
  Arguments arguments(given);
  for (const std::string_view flag : FlagsOfProgram(plan.role)) {
    const auto found = given.flags.find(std::string(flag));
    if (found != given.flags.end()) arguments.Set(found->first, found->second);
  }
  if (plan.role == Role::kScheduler || given.scheduler.empty()) {
    HDPS_RETURN_IF_ERROR(NeedOut(given.out));
  }
  arguments.Set("servers", plan.servers);
  arguments.Set("workers", plan.workers);
  if (plan.role == Role::kScheduler) {
    PlaceScheduler(plan, given, &arguments);
  } else {
    PlaceMember(plan, given, &arguments);
  }
  // Where one launcher shows the output of all, each keeps a log of its own.
  if (plan.launched && !given.out.empty()) {
    arguments.SetUnlessGiven("log_file", JoinPath(given.out, "log/" + MemberName(plan) + ".log"));
  }
  return arguments.Written();
}

}  // namespace hdps
