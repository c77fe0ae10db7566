// Runs the members as threads with in-process transports, and reports the first failure.
#include "tools/local_cluster.h"

#include <glog/logging.h>

#include <optional>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/job/job_spec.h"
#include "common/net/node_loop.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/process_watch.h"
#include "common/platform/random.h"
#include "common/process/command_line.h"
#include "scheduler/scheduler_node.h"
#include "server/server_process.h"
#include "worker/role/worker_process.h"

namespace hdps {
namespace {

constexpr const char* kSchedulerAddress = "inproc://scheduler";

// Keeps the first failure of the members, which run on their own threads.
class FirstFailure {
 public:
  void Note(const std::string& who, int status, const std::string& reason) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (status != 0 && exit_.status == 0) exit_ = {status, who + ": " + reason};
  }
  ProcessEnd Get() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return exit_;
  }

 private:
  Mutex mutex_;
  ProcessEnd exit_ HDPS_GUARDED_BY(mutex_);
};

// State that all members share; it outlives their threads.
struct Cluster {
  Cluster(const LocalClusterOptions& o, FileSystem& f, MonotonicClock& c)
      : options(o), files(f), clock(c) {}

  const LocalClusterOptions& options;
  FileSystem& files;
  MonotonicClock& clock;
  std::shared_ptr<InprocHub> hub = NewInprocHub();
  FirstFailure failure;
};

void RunServer(Cluster& cluster, uint32_t rank) {
  const std::string name = "server " + std::to_string(rank);
  ServerProcessOptions options;
  options.node.job = cluster.options.job;
  options.node.identity.self = NewPeerId();
  options.node.identity.scheduler_address = kSchedulerAddress;
  options.node.identity.rank = static_cast<int32_t>(rank);
  options.node.identity.host = HostAndProcess();
  options.node.spill_folder = JoinPath(cluster.options.out, "spill");
  const std::unique_ptr<Transport> transport =
      NewInprocTransport(cluster.hub, {.self = options.node.identity.self});
  Result<std::string> address = transport->Listen("inproc://server_" + std::to_string(rank));
  if (!address.ok()) return cluster.failure.Note(name, 3, address.status().message());
  options.node.identity.own_address = *address;
  const std::unique_ptr<Executor> executor = NewTbbExecutor(cluster.options.threads);
  const ProcessEnd end =
      RunServerProcess(options, *transport, cluster.clock, cluster.files, *executor);
  LOG(INFO) << name << " ended with status " << end.status << ": " << end.reason;
  cluster.failure.Note(name, end.status, end.reason);
}

void RunWorker(Cluster& cluster, uint32_t rank) {
  const std::string name = "worker " + std::to_string(rank);
  WorkerProcessOptions options;
  options.node.job = cluster.options.job;
  options.node.identity.self = NewPeerId();
  options.node.identity.scheduler_address = kSchedulerAddress;
  options.node.identity.rank = static_cast<int32_t>(rank);
  options.node.identity.host = HostAndProcess();
  options.number_here = rank;
  options.print = cluster.options.voice.notice;
  if (cluster.options.after_step) {
    options.after_step = [&cluster, rank](const StepReport& report) {
      cluster.options.after_step({rank}, report);
    };
  }
  std::optional<StepTrace> trace;
  if (cluster.options.trace != nullptr) {
    options.trace =
        &trace.emplace(*cluster.options.trace, cluster.clock, rank, cluster.options.trace_steps);
  }
  const std::unique_ptr<Transport> transport =
      NewInprocTransport(cluster.hub, {.self = options.node.identity.self});
  const std::unique_ptr<Executor> executor = NewTbbExecutor(cluster.options.threads);
  const ProcessEnd end =
      RunWorkerProcess(options, *transport, cluster.clock, cluster.files, *executor).end;
  LOG(INFO) << name << " ended with status " << end.status << ": " << end.reason;
  cluster.failure.Note(name, end.status, end.reason);
}

}  // namespace

Result<ProcessEnd> RunLocalCluster(const LocalClusterOptions& options, FileSystem& files,
                                   MonotonicClock& clock) {
  SchedulerOptions scheduler;
  scheduler.job = options.job;
  scheduler.out = options.out;
  scheduler.num_servers = options.num_servers;
  scheduler.num_workers = options.num_workers;
  scheduler.given_job = options.given_job;
  scheduler.resume = options.resume;
  scheduler.members_return = false;
  scheduler.boot = BootIdentity();
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SchedulerNode> node,
                        SchedulerNode::Make(scheduler, options.voice, files));
  Cluster cluster(options, files, clock);
  const std::unique_ptr<Transport> transport =
      NewInprocTransport(cluster.hub, {.self = kSchedulerPeer});
  HDPS_RETURN_IF_ERROR(transport->Listen(kSchedulerAddress).status());

  std::vector<std::unique_ptr<Thread>> threads;
  for (uint32_t s = 0; s < options.num_servers; ++s) {
    threads.push_back(StartThread("server", [&cluster, s] { RunServer(cluster, s); }));
  }
  for (uint32_t w = 0; w < options.num_workers; ++w) {
    threads.push_back(StartThread("worker", [&cluster, w] { RunWorker(cluster, w); }));
  }
  NodeLoopOptions loop;
  loop.stop = options.stop;
  loop.stop_reason = "this process was told to stop";
  loop.on_turn = [&] {
    // A member that ends before it has joined cannot report to the scheduler.
    const ProcessEnd failure = cluster.failure.Get();
    if (failure.status != 0) node->Fail(failure.status, failure.reason);
    if (options.end_now != nullptr && *options.end_now) {
      node->Fail(kExitFailed, "this process was told to end at once: nothing more was saved");
    }
  };
  ProcessEnd end = RunNodeLoop(*node, *transport, clock, loop);
  for (const std::unique_ptr<Thread>& thread : threads) thread->Join();
  return end;
}

}  // namespace hdps
