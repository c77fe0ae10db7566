// Implements hdps trace: records some steps of a running job, and writes them as one file.
#include <gflags/gflags.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/platform/file_system.h"
#include "common/platform/output_file.h"
#include "common/platform/random.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "common/protocol/trace/trace_messages.h"
#include "common/telemetry/clock_fit.h"
#include "common/telemetry/trace_file.h"
#include "tools/commands.h"
#include "tools/scheduler_flags.h"

DECLARE_string(out);
DEFINE_uint32(steps, 20, "Number of steps to record, from 1 to 200");

namespace hdps {
namespace {

constexpr int64_t kAskEveryMs = 100;

// Puts parts into the trace, by the names of their members.
Status AddPart(const TraceReply& reply, Trace* trace) {
  HDPS_ASSIGN_OR_RETURN(SpanPart part, Unpack(reply.packed));
  auto member = std::ranges::find(trace->members, reply.member, &TracedMember::name);
  if (member == trace->members.end()) {
    trace->members.push_back({reply.member});
    member = trace->members.end() - 1;
  }
  member->left_out = std::max(member->left_out, reply.left_out);
  const bool is_better =
      member->uncertainty_ns < 0 || reply.uncertainty_ns < member->uncertainty_ns;
  if (reply.uncertainty_ns >= 0 && is_better) {
    member->offset_ns = reply.offset_ns;
    member->uncertainty_ns = reply.uncertainty_ns;
  }
  member->parts.push_back(std::move(part));
  return {};
}

// Notes which workers lack steps, and which clocks are not known.
void NoteMissing(Trace* trace) {
  for (const TracedMember& member : trace->members) {
    Clock steps = 0;
    for (const SpanPart& part : member.parts) {
      steps += std::ranges::count_if(
          part.spans, [&](const Span& span) { return part.words[span.track] == "step"; });
    }
    if (member.name.starts_with("worker") && steps < trace->until - trace->from) {
      trace->notes.push_back(member.name + ": " + std::to_string(steps) + " of " +
                             std::to_string(trace->until - trace->from) + " steps");
    }
    if (member.left_out > 0) {
      trace->notes.push_back(member.name + ": " + std::to_string(member.left_out) +
                             " spans were left out, because a member keeps a million");
    }
    if (member.uncertainty_ns < 0) {
      trace->notes.push_back(member.name + ": its clock could not be compared");
    }
  }
}

// Takes the parts of the trace until it is whole, or no more can come.
Result<Trace> TakeTrace(SchedulerConnection& scheduler) {
  Trace trace;
  TraceRequest request{NewPeerId().value, FLAGS_steps, 0};
  bool said = false;
  while (true) {
    const Result<TraceReply> reply = scheduler.Ask<TraceReply>(request, kAskPatienceMs);
    Status failed = reply.status();
    if (failed.ok() && reply->code != Code::kOk) failed = Status(reply->code, reply->message);
    if (!failed.ok()) {
      if (trace.members.empty()) return failed;
      trace.notes.push_back(failed.message());
      return trace;
    }
    if (reply->from < reply->until) {
      trace.from = reply->from;
      trace.until = reply->until;
      if (!std::exchange(said, true)) {
        PrintError("hdps trace: records steps %lld to %lld\n", static_cast<long long>(trace.from),
                   static_cast<long long>(trace.until) - 1);
      }
    }
    if (reply->has_part) {
      HDPS_RETURN_IF_ERROR(AddPart(*reply, &trace));
      ++request.part;
    } else if (reply->whole) {
      if (!reply->message.empty()) trace.notes.push_back(reply->message);
      return trace;
    } else {
      scheduler.Pause(kAskEveryMs);
    }
    if (StopRequested()) {
      trace.notes.push_back("hdps trace was stopped");
      return trace;
    }
  }
}

void Tell(const Trace& trace) {
  size_t spans = 0;
  int64_t worst_ns = 0;
  for (const TracedMember& member : trace.members) {
    for (const SpanPart& part : member.parts) spans += part.spans.size();
    worst_ns = std::max(worst_ns, member.uncertainty_ns);
  }
  PrintOut("%s: %zu spans of %zu members; clocks agree within %.0f us\n", FLAGS_out.c_str(), spans,
           trace.members.size(), static_cast<double>(worst_ns) / 1e3);
  for (const std::string& note : trace.notes) PrintOut("missing: %s\n", note.c_str());
}

Status Run() {
  if (FLAGS_steps < 1 || FLAGS_steps > kTraceStepsMax) {
    return {Code::kInvalidArgument, "--steps=" + std::to_string(FLAGS_steps) +
                                        " is out of range; give a number from 1 to " +
                                        std::to_string(kTraceStepsMax)};
  }
  if (FLAGS_out.empty()) {
    return {Code::kInvalidArgument, "--out is missing; give the file for the trace, --out=FILE"};
  }
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerConnection> scheduler,
                        OpenScheduler({KeyRole::kReader, KeyRole::kAdmin}));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const auto say = [](const Status& written) -> Status {
    if (written.ok()) return {};
    return {Code::kInvalidArgument,
            "--out=" + FLAGS_out + " cannot be written: " + written.message()};
  };
  // A path that cannot be written is found before steps are recorded.
  HDPS_RETURN_IF_ERROR(say(CreateAtomically(*files, FLAGS_out).status()));
  InstallStopSignals();
  HDPS_ASSIGN_OR_RETURN(Trace trace, TakeTrace(*scheduler));
  if (trace.members.empty()) {
    std::string why = "nothing was recorded";
    for (const std::string& note : trace.notes) why += ": " + note;
    return {Code::kUnavailable, why};
  }
  std::ranges::sort(trace.members, {}, [](const TracedMember& member) {
    return std::pair(!member.name.starts_with("worker"), member.name);
  });
  NoteMissing(&trace);
  FitClocks(&trace);
  HDPS_RETURN_IF_ERROR(say(WriteNamedFile(*files, FLAGS_out, TraceJson(trace))));
  Tell(trace);
  return {};
}

}  // namespace

Subcommand TraceCommand() {
  return {"trace",
          "record some steps of a running job, in all members, as a timeline",
          "hdps trace --scheduler=ADDRESS --out=FILE [--steps=20] [--keys=DIR]",
          {"scheduler", "elect_file", "keys", "insecure", "steps", "out"},
          Run};
}

}  // namespace hdps
