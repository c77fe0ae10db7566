// Runs a server's node on its loop.
#include "server/server_process.h"

#include "common/net/node_loop.h"
#include "server/server_node.h"

namespace hdps {

ServerExit RunServerProcess(const ServerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor) {
  ServerNodeOptions node_options;
  node_options.job = options.job;
  node_options.self = options.self;
  node_options.scheduler_address = options.scheduler_address;
  node_options.own_address = options.own_address;
  node_options.rank = options.rank;
  node_options.num_servers = options.num_servers;
  node_options.num_workers = options.num_workers;
  node_options.host = options.host;
  node_options.spill_folder = options.spill_folder;
  node_options.own_process = options.own_process;
  node_options.expected_rows = options.expected_rows;
  node_options.sections = transport.sections();
  ServerNode node(files, executor, node_options);

  bool stop_requested = false;
  NodeLoopOptions loop;
  loop.on_turn = [&] {
    if (options.stop == nullptr || stop_requested || !options.stop->load()) return;
    stop_requested = true;
    node.RequestStop("server was told to stop");
  };
  ServerExit exit;
  exit.status = RunNodeLoop(node, transport, clock, loop);
  exit.reason = node.exit_reason();
  return exit;
}

}  // namespace hdps
