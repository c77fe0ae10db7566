// Runs the node's loop on a thread beside the caller.
#include "worker/outside/table_process.h"

#include <glog/logging.h>

#include <cstdint>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/net/node_loop.h"
#include "common/platform/executor.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

struct TableProcess::Parts {
  Parts(const TableProcessOptions& options, std::unique_ptr<Transport> owned, MonotonicClock& time)
      : transport(std::move(owned)),
        clock(time),
        own_executor(options.worker.executor == nullptr ? NewTbbExecutor(options.threads)
                                                        : nullptr),
        channel([this] { transport->Wake(); }, time,
                int64_t{options.node.job->cluster.request_timeout_s} * 1000, transport->sections()),
        node(options.node, &channel),
        worker(WithExecutor(options.worker, own_executor.get()), channel, time) {}

  static TableWorkerOptions WithExecutor(TableWorkerOptions options, Executor* executor) {
    if (options.executor == nullptr) options.executor = executor;
    return options;
  }

  void Run() {
    NodeLoopOptions options;
    options.on_turn = [this] { channel.OnTurn(node, clock.NowMs()); };
    end = RunNodeLoop(node, *transport, clock, options);
    const PsClientCounters& exchanged = node.counters();
    LOG(INFO) << exchanged.requests << " requests to servers, " << exchanged.repeats
              << " sent again; " << exchanged.row_bytes << " bytes of rows pulled, "
              << exchanged.gradient_bytes << " bytes of gradients pushed";
    channel.Close();
  }

  const std::unique_ptr<Transport> transport;
  MonotonicClock& clock;
  const std::unique_ptr<Executor> own_executor;
  NodeChannel channel;
  WorkerNode node;
  TableWorker worker;
  ProcessEnd end;                // Written by the thread before it ends.
  std::unique_ptr<Thread> loop;  // Null after Leave().
};

TableProcess::TableProcess(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

TableProcess::~TableProcess() {
  Leave(Status(Code::kUnavailable, "the program has closed its worker before the job's end"));
}

TableWorker& TableProcess::worker() { return parts_->worker; }

Result<std::unique_ptr<TableProcess>> TableProcess::Join(const TableProcessOptions& options,
                                                         std::unique_ptr<Transport> transport,
                                                         MonotonicClock& clock) {
  auto parts = std::make_unique<Parts>(options, std::move(transport), clock);
  parts->loop = StartThread("node", [p = parts.get()] { p->Run(); });
  std::unique_ptr<TableProcess> process(new TableProcess(std::move(parts)));
  const Status begun = process->worker().Begin();
  if (begun.ok()) return process;
  const bool over = begun.code() == Code::kCancelled;
  const ProcessEnd end = process->Leave(over ? Status() : begun);
  if (end.status != kExitDone) return StatusOf(end);
  return Status(over ? Code::kUnavailable : begun.code(), begun.message());
}

ProcessEnd TableProcess::Leave(const Status& failure) {
  if (parts_->loop == nullptr) return parts_->end;
  const Standing standing = worker().standing();
  if (!failure.ok()) {
    parts_->channel.Fail(failure);
  } else if (standing == Standing::kSteps || standing == Standing::kWentBack) {
    parts_->channel.Fail(Status(Code::kUnavailable, "the program has left the job before its end"));
  }
  parts_->loop->Join();
  parts_->loop.reset();
  return parts_->end;
}

}  // namespace hdps
