// Runs real row servers for a benchmark, with a substitute for the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/child_process.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "worker/exchange/ps_client.h"

namespace hdps {

struct Job;
struct View;

struct RowClusterOptions {
  std::string job;  // JSON of the job.
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::string transport = "tcp";  // tcp, ipc or inproc.
  // Large sections may use shared memory, as for users.
  bool shared = true;
  // Servers are hdps-server processes from this program's folder; otherwise, and always with
  // inproc, threads.
  bool processes = true;
};

// A cluster of servers whose workers are in this process.
//
// Invariant: from Start() to the destructor all servers are in one view.
class RowCluster {
 public:
  static Result<std::unique_ptr<RowCluster>> Start(const BenchSetting& setting, FileSystem& files,
                                                   const RowClusterOptions& options);
  ~RowCluster();

  const Job& job() const { return *job_; }
  const std::shared_ptr<const View>& view() const { return view_; }
  // Returns the CPU seconds of this process and the servers so far.
  double CpuSeconds() const;
  // Returns a transport that knows all servers; it belongs to the thread that uses it.
  Result<std::unique_ptr<Transport>> NewWorkerTransport(uint32_t worker);

 private:
  RowCluster() = default;
  Status StartServers(const BenchSetting& setting, FileSystem& files,
                      const RowClusterOptions& options);
  // Accepts joins until all servers are there, then sends them the view.
  Status Form(const RowClusterOptions& options);
  void AnswerHeartbeats();
  std::unique_ptr<Transport> NewTransport(const PeerName& self) const;
  bool shared_ = true;

  std::shared_ptr<const Job> job_;
  std::shared_ptr<const View> view_;
  void RunServer(const std::string& address, FileSystem& files, int threads) const;

  std::vector<PeerName> worker_names_;  // In order of ranks.
  std::shared_ptr<InprocHub> hub_;      // Null with ZeroMQ.
  std::unique_ptr<Transport> scheduler_transport_;
  std::string scheduler_address_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<ChildProcess>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;  // Server threads.
  std::unique_ptr<Thread> scheduler_;
};

// Sends the requests of one worker and waits for their replies, one at a time or several.
class RowClient {
 public:
  // Requires: `cluster` outlives the client.
  static Result<std::unique_ptr<RowClient>> Make(RowCluster& cluster, uint32_t worker);

  Ticket Start(std::vector<ServerRequest> requests);
  SectionAllocator* sections() { return transport_->sections(); }
  const Transport& transport() const { return *transport_; }
  // Waits for all replies to the ticket.
  Result<std::vector<Frame>> Wait(Ticket ticket);
  Result<std::vector<Frame>> Call(std::vector<ServerRequest> requests) {
    return Wait(Start(std::move(requests)));
  }

 private:
  RowClient(const PsClientOptions& options, std::unique_ptr<Transport> transport)
      : client_(options), transport_(std::move(transport)), clock_(NewSystemClock()) {}
  void SendAll();

  PsClient client_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MonotonicClock> clock_;
  uint64_t next_ticket_ = 1;
  std::vector<TicketResult> results_;
};

}  // namespace hdps
