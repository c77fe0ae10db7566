// Runs the workers as threads beside the other members, and reports the first failure.
#include "tools/local_cluster.h"

#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/telemetry/member_watch.h"
#include "common/telemetry/trace_file.h"
#include "tools/served_job.h"
#include "worker/data/cache/row_caches.h"
#include "worker/role/worker_process.h"

namespace hdps {
namespace {

// State that all workers share; it outlives their threads.
struct Cluster {
  const LocalClusterOptions& options;
  FileSystem& files;
  MonotonicClock& clock;
  ServedJob& members;
  const std::shared_ptr<RowCaches> rows;
};

ProcessEnd RunWorker(Cluster& cluster, uint32_t rank) {
  WorkerProcessOptions options;
  options.node.job = cluster.options.job;
  options.node.identity = cluster.members.Identity(rank);
  options.number_here = rank;
  options.rows = cluster.rows;
  if (cluster.options.watch) options.watch = cluster.options.watch(Role::kWorker, rank);
  options.print = cluster.options.voice.notice;
  if (cluster.options.script != nullptr) options.replay = &cluster.options.asked_whole[rank];
  if (cluster.options.after_step) {
    options.after_step = [&cluster, rank](const StepReport& report) {
      cluster.options.after_step({rank}, report);
    };
  }
  if (cluster.options.trace != nullptr) {
    options.node.recorder = cluster.options.trace->workers[rank].get();
  }
  const std::unique_ptr<Transport> transport =
      NewInprocTransport(cluster.members.hub(), {.self = options.node.identity.self});
  const std::unique_ptr<Executor> executor = NewTbbExecutor(cluster.options.threads);
  return RunWorkerProcess(options, *transport, cluster.clock, cluster.files, *executor).end;
}

void BeginTrace(const LocalClusterOptions& options, MonotonicClock& clock) {
  const auto begin = [&](uint32_t count, std::vector<std::unique_ptr<SpanRecorder>>* recorders) {
    recorders->clear();
    for (uint32_t i = 0; i < count; ++i) {
      recorders->push_back(std::make_unique<SpanRecorder>(clock));
      recorders->back()->RecordFirst(options.trace_steps);
    }
  };
  begin(options.num_servers, &options.trace->servers);
  begin(options.num_workers, &options.trace->workers);
}

}  // namespace

Result<ProcessEnd> RunLocalCluster(const LocalClusterOptions& options, FileSystem& files,
                                   MonotonicClock& clock) {
  if (options.trace != nullptr) BeginTrace(options, clock);
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ServedJob> members,
                        ServedJob::Start(options, files, clock));
  if (options.accepted) options.accepted();
  const RowCacheOptions keeping =
      CacheOptionsOf(*options.job, files, JoinPath(options.out, "rows"));
  Cluster cluster{options, files, clock, *members, std::make_shared<RowCaches>(files, keeping)};
  std::vector<std::unique_ptr<Thread>> workers;
  for (uint32_t w = 0; w < options.num_workers; ++w) {
    workers.push_back(StartThread("worker", [&cluster, w] {
      cluster.members.Ended("worker " + std::to_string(w), RunWorker(cluster, w));
    }));
  }
  ProcessEnd end = members->Run();
  workers.clear();  // Joins them.
  return end;
}

}  // namespace hdps
