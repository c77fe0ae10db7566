// Connects the parts of a worker: loop thread, compute thread, and the channel between them.
#include "worker/role/worker_process.h"

#include <glog/logging.h>

#include <optional>
#include <utility>

#include "common/job/spec/cluster_spec.h"
#include "common/net/node_loop.h"
#include "common/telemetry/member_watch.h"
#include "worker/exchange/node_channel.h"
#include "worker/role/trainer.h"

namespace hdps {

WorkerExit RunWorkerProcess(const WorkerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor) {
  NodeChannel channel([&transport] { transport.Wake(); }, clock,
                      int64_t{options.node.job->cluster.request_timeout_s} * 1000,
                      transport.sections());
  Trainer trainer(
      {options.node.job, options.collective_host, options.after_step, options.node.recorder,
       options.number_here, options.print, options.rows, options.replay},
      channel, clock, files, executor);
  WorkerNode node(options.node, &channel);

  const auto copy = [&node] {
    return MemberCopy{0, node.joined(), node.rank(), node.ReadFigures()};
  };
  NodeLoopOptions loop;
  loop.stop = options.stop;
  loop.stop_reason = "worker was told to stop";
  loop.leave_ms = options.leave_ms;
  loop.on_turn = [&] {
    channel.OnTurn(node, clock.NowMs());
    if (const std::optional<ViewId> view = channel.TakeInterruption()) trainer.Interrupt(*view);
    // A rank that waits for others in a collective would not notice that the job has ended.
    if (node.done()) trainer.Abort();
    if (options.watch != nullptr) options.watch->OnTurn(clock.NowMs(), copy);
  };

  const std::unique_ptr<Thread> compute = StartThread("compute", [&trainer] { trainer.Run(); });
  WorkerExit exit;
  exit.end = RunNodeLoop(node, transport, clock, loop);
  const PsClientCounters& exchanged = node.counters();
  LOG(INFO) << exchanged.requests << " requests to servers, " << exchanged.repeats
            << " sent again; " << exchanged.row_bytes << " bytes of rows pulled, "
            << exchanged.gradient_bytes << " bytes of gradients pushed";
  channel.Close();
  trainer.Abort();
  compute->Join();
  exit.times = trainer.times();
  if (options.watch != nullptr) options.watch->PutOut(clock.NowMs(), copy());
  return exit;
}

}  // namespace hdps
