// Runs a server's node on its loop.
#include "server/server_process.h"

#include "common/net/node_loop.h"
#include "common/telemetry/member_watch.h"

namespace hdps {

ProcessEnd RunServerProcess(const ServerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor) {
  ServerNodeOptions node_options = options.node;
  node_options.sections = transport.sections();
  node_options.clock = &clock;
  node_options.wake = [&transport] { transport.Wake(); };
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
