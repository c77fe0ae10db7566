// Runs one cluster in this process for each segment of the plan.
#include "tools/replay/replay_run.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/base/counted.h"
#include "common/base/hex_digits.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/manifest.h"
#include "scheduler/plan/init_source.h"
#include "scheduler/plan/round_script.h"
#include "server/record/order_gate.h"
#include "tools/export/first_checkpoint.h"
#include "tools/training.h"

namespace hdps {
namespace {

constexpr uint64_t kSummaryBytesMax = uint64_t{1} << 24;

// Requests of workers are given up later than this, so that it is told who is waited for.
TimeMs PatienceOf(const Job& job) { return TimeMs{500} * job.cluster.request_timeout_s; }

std::string MembersOf(const ReplaySegment& segment) {
  return Counted(segment.servers, "server") + " and " + Counted(segment.workers, "worker");
}

Result<ProcessEnd> RunSegment(const ReplaySegment& segment, Clock stop_at,
                              LocalClusterOptions options, FileSystem& files,
                              MonotonicClock& clock) {
  const RoundScript script{segment.shards, stop_at};
  std::vector<std::unique_ptr<OrderGate>> gates;
  for (const std::vector<OrderEntry>& order : segment.orders) {
    gates.push_back(std::make_unique<OrderGate>(order, PatienceOf(*options.job)));
  }
  options.num_servers = segment.servers;
  options.num_workers = segment.workers;
  options.script = &script;
  options.asked_whole = segment.asked_whole;
  options.gate = [&gates](ServerId server) { return gates[server.value].get(); };
  HDPS_ASSIGN_OR_RETURN(const ProcessEnd end, RunLocalCluster(options, files, clock));
  if (end.status != kExitDone || (options.stop != nullptr && *options.stop)) return end;
  for (size_t g = 0; g < gates.size(); ++g) {
    const std::string missing = gates[g]->Missing();
    if (missing.empty()) continue;
    return Status(Code::kInvalidArgument,
                  "the replay has ended before the record of server " + std::to_string(g) + ": " +
                      missing +
                      ", have not come; give the settings of the run, such as train.epochs, and "
                      "begin from the checkpoint that it began from");
  }
  return end;
}

// Checks that the run follows from the job and the record alone.
Status CheckJob(const Job& job, const OrderHeader& header) {
  if (JobDigest(job) != header.job_digest) {
    return {Code::kInvalidArgument,
            "--job: the record is of another job; give the file and --set that the run had, or "
            "the job_as_given.json of its --out"};
  }
  const char* outside = nullptr;
  if (job.data.follow) outside = "data.follow: how far its log had grown";
  for (const std::string& entry : job.data.train) {
    if (entry.starts_with("kafka://")) outside = "data.train: what its topic held";
  }
  for (const TableSpec& table : job.tables) {
    if (table.policy.evict_after_seconds > 0)
      outside = "evict_after_seconds: when rows left by the clock";
  }
  if (outside == nullptr) return {};
  return {Code::kInvalidArgument,
          std::string(outside) + " is not in the record, so this run cannot be replayed"};
}

std::string DescribeRecord(const ReplayPlan& plan) {
  char text[160];
  const Clock steps = plan.segments.back().end - plan.segments.front().begin;
  std::snprintf(text, sizeof(text), "the record: %llu requests in %llu bytes",
                static_cast<unsigned long long>(plan.entries),
                static_cast<unsigned long long>(plan.bytes));
  std::string line = text;
  if (plan.end_known && steps > 0 && !plan.digest) line += ", to step " + std::to_string(steps);
  if (plan.end_known && steps > 0 && plan.digest) {
    std::snprintf(text, sizeof(text), ", %.1f bytes a step",
                  static_cast<double>(plan.bytes) / static_cast<double>(steps));
    line += text;
  }
  return line;
}

Result<ReplayPlan> ReadPlan(const ReplayRequest& request, FileSystem& files) {
  uint64_t bytes = 0;
  // It takes more memory than the plan, and ends here.
  HDPS_ASSIGN_OR_RETURN(const std::vector<NamedOrderFile> record,
                        ReadRecord(files, request.record, &bytes));
  HDPS_ASSIGN_OR_RETURN(ReplayPlan plan, PlanReplay(record, request.until));
  plan.bytes = bytes;
  return plan;
}

}  // namespace

Status CheckOut(const ReplayPlan& plan, FileSystem& files, const std::string& out) {
  const Clock begin = plan.segments.front().begin;
  const bool has = HasCheckpoint(files, out);
  if (begin == 0 && has) {
    return {Code::kInvalidArgument, "--out=" + out +
                                        " holds a checkpoint, and the record begins at the first "
                                        "step; give an empty folder"};
  }
  if (begin == 0) return {};
  const std::string root = JoinPath(out, "checkpoint"), step = std::to_string(begin);
  const std::string begins = "the record begins at step " + step + ", from a checkpoint";
  if (!has) {
    return {Code::kInvalidArgument, begins + "; copy that checkpoint into " + root};
  }
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint newest, FindCheckpoint(files, root));
  if (newest.manifest.clock == begin) return {};
  return {Code::kInvalidArgument, begins + ", and the newest one in " + root + " is that of step " +
                                      std::to_string(newest.manifest.clock) +
                                      "; leave there the one of step " + step +
                                      " with those that it builds on, and none that is newer"};
}

Result<ProcessEnd> Replay(const ReplayPlan& plan, LocalClusterOptions options, FileSystem& files,
                          MonotonicClock& clock) {
  ProcessEnd end;
  Job job = *options.job;
  job.checkpoint.copy_to.clear();  // What is there is the run's, and a copy may remove some of it.
  options.job = std::make_shared<const Job>(std::move(job));
  // The run may have begun with changed settings. Later segments begin from the replay's own saves.
  options.resume = Resume::kChanged;
  for (const ReplaySegment& segment : plan.segments) {
    const bool last = &segment == &plan.segments.back();
    const bool to_own_end = last && (plan.whole || !plan.end_known);
    if (options.voice.notice) {
      const std::string until =
          plan.end_known ? "to step " + std::to_string(segment.end) : "to the end";
      options.voice.notice("replays from step " + std::to_string(segment.begin) + " " + until +
                           " with " + MembersOf(segment));
    }
    HDPS_ASSIGN_OR_RETURN(end, RunSegment(segment, to_own_end ? RoundScript::kNoStop : segment.end,
                                          options, files, clock));
    if (end.status != kExitDone || (options.stop != nullptr && *options.stop)) return end;
    options.resume = Resume::kAuto;
  }
  return end;
}

Result<std::string> CompareDigests(const ReplayPlan& plan, FileSystem& files,
                                   const std::string& out) {
  if (!plan.digest) return std::string();
  HDPS_ASSIGN_OR_RETURN(const std::string summary,
                        ReadWholeFile(files, JoinPath(out, "summary.json"), kSummaryBytesMax));
  const std::string digest = HexDigits((*plan.digest)[0]) + HexDigits((*plan.digest)[1]);
  if (summary.find("\"digest\": \"" + digest + "\"") != std::string::npos) {
    return "the digest is that of the recorded run, " + digest;
  }
  const std::string steps = std::to_string(plan.segments.back().end);
  if (summary.find("\"steps\": " + steps + ",") == std::string::npos) {
    return Status(Code::kInvalidArgument,
                  "--job: the recorded run ended at step " + steps + ", and this one elsewhere (" +
                      JoinPath(out, "summary.json") +
                      "): give the settings of the run, such as train.epochs");
  }
  return Status(Code::kCorruption,
                "the digest in " + JoinPath(out, "summary.json") +
                    " is not that of the recorded run, " + digest +
                    ": do the data files and this machine's arithmetic equal those of the run?");
}

Result<ProcessEnd> RunReplay(const ReplayRequest& request, FileSystem& files) {
  HDPS_ASSIGN_OR_RETURN(const ReplayPlan plan, ReadPlan(request, files));
  TrainingRequest training;
  training.job = request.job;
  training.overrides = request.overrides;
  training.out = request.out;
  training.threads = request.threads;
  training.log = request.log;
  training.voice = request.voice;
  training.stop = request.stop;
  for (const ReplaySegment& segment : plan.segments) {
    training.servers = std::max(training.servers, segment.servers);
    training.workers = std::max(training.workers, segment.workers);
  }
  HDPS_RETURN_IF_ERROR(CheckOut(plan, files, request.out));
  HDPS_ASSIGN_OR_RETURN(PreparedRun run, PrepareRun(training, ModelOf::kJob, files));
  if (!request.init.empty()) run.options.init = WholeInitPath(request.init);
  const Job& job = *run.options.job;
  HDPS_RETURN_IF_ERROR(CheckJob(job, plan.header));
  run.options.voice.notice(DescribeRecord(plan));
  for (const std::string& line : plan.warnings) {
    if (run.options.voice.warning) run.options.voice.warning(line);
  }
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  HDPS_ASSIGN_OR_RETURN(const ProcessEnd end, Replay(plan, run.options, files, *clock));
  if (end.status != kExitDone || (request.stop != nullptr && *request.stop)) return end;
  HDPS_ASSIGN_OR_RETURN(const std::string line, CompareDigests(plan, files, run.options.out));
  if (!line.empty()) run.options.voice.notice(line);
  return end;
}

}  // namespace hdps
