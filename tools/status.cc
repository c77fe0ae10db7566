// Implements hdps status: asks a running scheduler for the state of its job.
#include <gflags/gflags.h>

#include <string>
#include <string_view>

#include "common/process/terminal.h"
#include "common/protocol/status_messages.h"
#include "tools/commands.h"
#include "tools/scheduler_flags.h"
#include "tools/status_text.h"

DECLARE_bool(json);

namespace hdps {
namespace {

void Print(const StatusReply& status) {
  PrintOut("job '%s': %s\n", status.job.c_str(), status.state.c_str());
  if (status.members.empty()) return;
  PrintOut("view %llu, every worker has finished step %lld\n",
           static_cast<unsigned long long>(status.view.value),
           static_cast<long long>(status.clock));
  for (const MemberStatus& member : status.members) {
    PrintOut("  %-40s step %-10lld heard %.1f s ago\n", member.name.c_str(),
             static_cast<long long>(member.clock), static_cast<double>(member.silent_ms) / 1000);
  }
}

Status Run() {
  HDPS_ASSIGN_OR_RETURN(
      const StatusReply status,
      AskScheduler<StatusReply>({KeyRole::kReader, KeyRole::kAdmin}, StatusRequest()));
  if (FLAGS_json) {
    PrintOutText(StatusJson(status));
  } else {
    Print(status);
  }
  return {};
}

}  // namespace

Subcommand StatusCommand() {
  return {"status",
          "show the state of a running job",
          "hdps status --scheduler=ADDRESS [--keys=DIR] [--json]",
          {"scheduler", "keys", "insecure", "json"},
          Run};
}

}  // namespace hdps
