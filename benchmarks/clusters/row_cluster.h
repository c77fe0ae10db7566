// Servers of rows for a benchmark: real ones, told by a stand-in for the scheduler who is there.
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
  std::string job;  // Its JSON.
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::string transport = "tcp";  // tcp, ipc or inproc.
  bool shared = true;     // Large sections may go through shared memory, as they do for users.
  bool processes = true;  // Servers are hdps-server beside this program; else, and always with
                          // inproc, threads of this one.
};

// Invariant: from Start() to the destructor all servers are of one view, whose workers are this
// process'.
class RowCluster {
 public:
  static Result<std::unique_ptr<RowCluster>> Start(const BenchSetting& setting, FileSystem& files,
                                                   const RowClusterOptions& options);
  ~RowCluster();

  const Job& job() const { return *job_; }
  const std::shared_ptr<const View>& view() const { return view_; }
  // What the processors did so far for this process and the servers, in seconds of one core.
  double CpuSeconds() const;
  // A transport that knows all servers; it belongs to the thread that uses it.
  Result<std::unique_ptr<Transport>> NewWorkerTransport(uint32_t worker);

 private:
  RowCluster() = default;
  Status StartServers(const BenchSetting& setting, FileSystem& files,
                      const RowClusterOptions& options);
  // Takes joins until all servers are there, tells them the view.
  Status Form(const RowClusterOptions& options);
  void AnswerHeartbeats();
  std::unique_ptr<Transport> NewTransport(const PeerName& self) const;
  bool shared_ = true;

  std::shared_ptr<const Job> job_;
  std::shared_ptr<const View> view_;
  void RunServer(const std::string& address, FileSystem& files, int threads) const;

  std::vector<PeerName> worker_names_;  // By rank.
  std::shared_ptr<InprocHub> hub_;      // Null: over ZeroMQ.
  std::unique_ptr<Transport> hall_;
  std::string hall_address_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<ChildProcess>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;  // Of servers that are threads.
  std::unique_ptr<Thread> scheduler_;
};

// One worker's requests, waited for one by one or several at a time.
class RowClient {
 public:
  // `cluster` must outlive the client.
  static Result<std::unique_ptr<RowClient>> Make(RowCluster& cluster, uint32_t worker);

  Ticket Start(std::vector<ServerRequest> requests);
  SectionAllocator* sections() { return transport_->sections(); }
  const Transport& transport() const { return *transport_; }
  // The replies to the ticket, once all are there.
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
