// Starts servers on threads and runs the scheduler's loop.
#include "tools/served_job.h"

#include <glog/logging.h>

#include <utility>

#include "common/job/job_spec.h"
#include "common/net/node_loop.h"
#include "common/platform/process_watch.h"
#include "common/platform/random.h"
#include "common/process/command_line.h"
#include "common/telemetry/trace_file.h"
#include "server/record/order_recorder.h"
#include "server/server_process.h"

namespace hdps {
namespace {

constexpr const char* kSchedulerAddress = "inproc://scheduler";

}  // namespace

ServedJob::ServedJob(const LocalClusterOptions& options, FileSystem& files, MonotonicClock& clock)
    : options_(options),
      files_(files),
      clock_(clock),
      transport_(NewInprocTransport(hub_, {.self = kSchedulerPeer})) {}

Result<std::unique_ptr<ServedJob>> ServedJob::Start(const LocalClusterOptions& options,
                                                    FileSystem& files, MonotonicClock& clock) {
  SchedulerOptions scheduler;
  scheduler.job = options.job;
  scheduler.out = options.out;
  scheduler.num_servers = options.num_servers;
  scheduler.num_workers = options.num_workers;
  scheduler.given_job = options.given_job;
  scheduler.resume = options.resume;
  scheduler.init = options.init;
  scheduler.tensorboard = options.tensorboard;
  scheduler.members_return = false;
  scheduler.boot = BootIdentity();
  scheduler.pictures = options.pictures;
  scheduler.settings = options.settings;
  scheduler.resume_command = options.resume_command;
  scheduler.started_at = clock.NowMs();
  scheduler.unix_ms_at_zero = UnixMs() - scheduler.started_at;
  std::unique_ptr<ServedJob> members(new ServedJob(options, files, clock));
  scheduler.programs = members->programs_.get();
  scheduler.script = options.script;
  HDPS_ASSIGN_OR_RETURN(members->scheduler_, SchedulerNode::Make(scheduler, options.voice, files));
  HDPS_RETURN_IF_ERROR(members->transport_->Listen(kSchedulerAddress).status());
  for (uint32_t s = 0; s < options.num_servers; ++s) {
    members->servers_.push_back(StartThread("server", [m = members.get(), s] {
      m->Ended("server " + std::to_string(s), m->RunServer(s));
    }));
  }
  return members;
}

NodeIdentity ServedJob::Identity(uint32_t rank) const {
  NodeIdentity identity;
  identity.self = NewPeerId();
  identity.scheduler_address = kSchedulerAddress;
  identity.rank = static_cast<int32_t>(rank);
  identity.host = HostAndProcess();
  return identity;
}

void ServedJob::Ended(const std::string& who, const ProcessEnd& end) {
  LOG(INFO) << who << " ended with status " << end.status << ": " << end.reason;
  failure_.Note(who, end);
}

ProcessEnd ServedJob::RunServer(uint32_t rank) {
  ServerProcessOptions options;
  options.node.job = options_.job;
  options.node.identity = Identity(rank);
  options.node.spill_folder = JoinPath(options_.out, "spill");
  if (options_.trace != nullptr) options.node.recorder = options_.trace->servers[rank].get();
  if (options_.gate) options.node.order.gate = options_.gate({rank});
  std::unique_ptr<OrderRecorder> order;
  if (!options_.record.empty()) {
    Result<std::unique_ptr<OrderRecorder>> opened =
        OrderRecorder::Open(files_, options_.record, options.node.identity.self, *options_.job);
    if (!opened.ok()) return {kExitMistaken, opened.status().message()};
    order = *std::move(opened);
    options.node.order.recorder = order.get();
  }
  if (options_.watch) options.watch = options_.watch(Role::kServer, rank);
  const std::unique_ptr<Transport> transport =
      NewInprocTransport(hub_, {.self = options.node.identity.self});
  Result<std::string> address = transport->Listen("inproc://server_" + std::to_string(rank));
  if (!address.ok()) return {kExitFailed, address.status().message()};
  options.node.identity.own_address = *address;
  const std::unique_ptr<Executor> executor = NewTbbExecutor(options_.threads);
  return RunServerProcess(options, *transport, clock_, files_, *executor);
}

ProcessEnd ServedJob::Run() {
  NodeLoopOptions loop;
  loop.stop = options_.stop;
  loop.stop_reason = "this process was told to stop";
  loop.on_turn = [this] {
    const ProcessEnd failure = failure_.Get();
    if (failure.status != 0) scheduler_->Fail(failure.status, failure.reason);
    if (options_.end_now != nullptr && *options_.end_now) {
      scheduler_->Fail(kExitFailed, "this process was told to end at once: nothing more was saved");
    }
  };
  ProcessEnd end = RunNodeLoop(*scheduler_, *transport_, clock_, loop);
  servers_.clear();  // Joins them.
  return end;
}

}  // namespace hdps
