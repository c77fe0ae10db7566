// Runs a server's node on its loop.
#include "server/server_process.h"

#include <memory>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/net/node_loop.h"
#include "common/telemetry/member_watch.h"

namespace hdps {

ProcessEnd RunServerProcess(const ServerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor) {
  ServerNodeOptions node_options = options.node;
  node_options.sections = transport.sections();
  node_options.clock = &clock;
  node_options.wake = [&transport] { transport.Wake(); };
  // Under a memory limit requests run beside the loop, where a save's files would hold them up.
  std::unique_ptr<Executor> file_writes;
  if (node_options.job->cluster.memory_limit > 0) file_writes = NewTbbExecutor(1);
  node_options.file_writes = file_writes.get();
  ServerNode node(files, executor, node_options);
  NodeLoopOptions loop;
  loop.stop = options.stop;
  loop.stop_reason = "server was told to stop";
  loop.leave_ms = options.leave_ms;
  if (options.watch == nullptr) return RunNodeLoop(node, transport, clock, loop);
  const auto copy = [&node] {
    return MemberCopy{0, node.joined(), node.rank(), node.ReadFigures()};
  };
  loop.on_turn = [&] { options.watch->OnTurn(clock.NowMs(), copy); };
  const ProcessEnd end = RunNodeLoop(node, transport, clock, loop);
  options.watch->PutOut(clock.NowMs(), copy());
  return end;
}

}  // namespace hdps
