// hdps status: asks a running scheduler how its job is.
#include <gflags/gflags.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/process/command_line.h"
#include "common/protocol/messages.h"
#include "tools/commands.h"

DEFINE_string(scheduler, "", "Where the scheduler listens: tcp://HOST:PORT or ipc://PATH");
DEFINE_bool(insecure, false, "Allow addresses beyond loopback although nothing is encrypted");
DECLARE_bool(json);

namespace hdps {
namespace {

// The question may be lost: it is asked again until there is an answer, or for too long.
Result<StatusReply> Ask() {
  constexpr int64_t kPatienceMs = 5000, kAskEveryMs = 500;
  const PeerId self = NewPeerId();
  const std::unique_ptr<Transport> transport =
      NewZmqTransport({.self = self, .insecure = FLAGS_insecure});
  HDPS_RETURN_IF_ERROR(transport->Connect(kSchedulerPeer, FLAGS_scheduler));
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t until = clock->NowMs() + kPatienceMs;
  while (clock->NowMs() < until) {
    transport->Send(kSchedulerPeer, EncodeMessage(StatusRequest()));
    PeerId from;
    Frame frame;
    StatusReply reply;
    if (!transport->Receive(kAskEveryMs, &from, &frame)) continue;
    HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &reply));
    return reply;
  }
  return Status(Code::kUnavailable, "nobody answers at " + FLAGS_scheduler + " for " +
                                        std::to_string(kPatienceMs / 1000) +
                                        " s; is the scheduler running there?");
}

void Print(const StatusReply& status) {
  std::printf("job '%s': %s\n", status.job.c_str(), status.state.c_str());
  if (status.members.empty()) return;
  std::printf("view %llu, every worker has finished step %lld\n",
              static_cast<unsigned long long>(status.view.value),
              static_cast<long long>(status.clock));
  for (const MemberStatus& member : status.members) {
    std::printf("  %-40s step %-10lld heard %.1f s ago\n", member.name.c_str(),
                static_cast<long long>(member.clock), static_cast<double>(member.silent_ms) / 1000);
  }
}

void PrintJson(const StatusReply& status) {
  nlohmann::ordered_json members = nlohmann::ordered_json::array();
  for (const MemberStatus& member : status.members) {
    members.push_back(
        {{"name", member.name}, {"step", member.clock}, {"silent_ms", member.silent_ms}});
  }
  const nlohmann::ordered_json json = {{"job", status.job},
                                       {"state", status.state},
                                       {"view", status.view.value},
                                       {"step", status.clock},
                                       {"members", members}};
  // Names come from members: bytes that are no text are replaced, not fatal.
  std::puts(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

Status Run() {
  if (FLAGS_scheduler.empty()) {
    return {Code::kInvalidArgument,
            "--scheduler is missing; give the address that hdps-scheduler printed, "
            "--scheduler=tcp://HOST:PORT"};
  }
  HDPS_ASSIGN_OR_RETURN(const StatusReply status, Ask());
  FLAGS_json ? PrintJson(status) : Print(status);
  return {};
}

}  // namespace

Subcommand StatusCommand() {
  return {"status",
          "how the job of a running scheduler is",
          "hdps status --scheduler=ADDRESS [--json]",
          {"scheduler", "insecure", "json"},
          Run};
}

}  // namespace hdps
