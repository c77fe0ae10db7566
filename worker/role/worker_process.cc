// Ties a worker together: loop thread, compute thread, and the channel between them.
#include "worker/role/worker_process.h"

#include <glog/logging.h>

#include <utility>

#include "common/net/node_loop.h"
#include "worker/exchange/node_channel.h"
#include "worker/role/trainer.h"
#include "worker/role/worker_node.h"

namespace hdps {

WorkerExit RunWorkerProcess(const WorkerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor) {
  NodeChannel channel([&transport] { transport.Wake(); }, clock,
                      int64_t{options.job->cluster.request_timeout_s} * 1000, transport.sections());
  Trainer trainer({options.job, options.collective_host, options.after_step}, channel, clock, files,
                  executor);

  WorkerNodeOptions node_options;
  node_options.job = *options.job;
  node_options.self = options.self;
  node_options.scheduler_address = options.scheduler_address;
  node_options.rank = options.rank;
  node_options.num_servers = options.num_servers;
  node_options.num_workers = options.num_workers;
  node_options.host = options.host;
  WorkerNode node(node_options, &channel);

  bool stop_requested = false;
  NodeLoopOptions loop;
  loop.on_turn = [&] {
    channel.OnTurn(node, clock.NowMs());
    if (options.stop != nullptr && !stop_requested && options.stop->load()) {
      stop_requested = true;
      node.RequestStop("worker was told to stop");
    }
    // A rank that waits for the others in a sum would not hear that the job has ended.
    if (node.done()) trainer.Abort();
  };

  const std::unique_ptr<Thread> compute = StartThread("compute", [&trainer] { trainer.Run(); });
  WorkerExit exit;
  exit.status = RunNodeLoop(node, transport, clock, loop);
  exit.reason = node.exit_reason();
  const PsClientCounters& exchanged = node.counters();
  LOG(INFO) << exchanged.requests << " requests to servers, " << exchanged.repeats
            << " sent again; " << exchanged.row_bytes << " bytes of rows pulled, "
            << exchanged.gradient_bytes << " bytes of gradients pushed";
  channel.Close();
  trainer.Abort();
  compute->Join();
  exit.times = trainer.times();
  return exit;
}

}  // namespace hdps
