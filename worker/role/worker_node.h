// A worker as a member of the cluster: its membership, and its requests to the servers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "common/protocol/membership_client.h"
#include "common/telemetry/figure_layout.h"
#include "worker/exchange/compute_port.h"
#include "worker/exchange/ps_client.h"

namespace hdps {

struct CommandDone;
struct Heartbeat;
struct Job;
struct KvGet;
struct KvPut;
struct View;
class SpanRecorder;

struct WorkerNodeOptions {
  std::shared_ptr<const Job> job;
  NodeIdentity identity;
  SpanRecorder* recorder = nullptr;  // Records traces; null: there are none. Outlives the node.
};

// Passes messages from the cluster to the compute side, and its requests to the cluster. It knows
// neither data nor model.
//
// Invariant: the compute side learns of a view before any message of that view; OnEnd comes once
// and last. All calls, including those of ComputeRequests, come from one thread; they may be made
// from inside a call of ComputeSide.
class WorkerNode : public Node, public ComputeRequests {
 public:
  // Requires: `compute` outlives the node.
  WorkerNode(const WorkerNodeOptions& options, ComputeSide* compute);

  void OnFrame(PeerId from, Frame frame) override;
  void OnTick(TimeMs now) override;
  Output TakeOutput() override;
  bool done() const override;
  int exit_status() const override;
  const std::string& exit_reason() const override;

  void Start(Ticket ticket, std::vector<ServerRequest> requests,
             std::vector<ServerRequest> then) override;
  void Cancel(Ticket ticket) override;
  void Answer(const CommandDone& done) override;
  void Report(const Heartbeat& progress) override;
  void Put(const KvPut& put) override;
  void Get(const KvGet& get) override;
  bool place_empty() const override;
  void Fail(Status status) override;

  void RequestStop(const std::string& reason) override;
  void RequestLeave(const std::string& reason, TimeMs within_ms) override;
  const PsClientCounters& counters() const { return client_.counters(); }
  // Returns the figures of this worker as they are now. Requires: the compute side has counters.
  Readings ReadFigures();
  bool joined() const { return view_ != nullptr; }  // It is a member of a view.
  uint32_t rank() const { return joined() ? membership_.rank() : 0; }

 private:
  // Returns the activity of the compute side, and the members it waits for.
  Activity CurrentActivity() const;
  // Counts the bytes of a frame to or from a server.
  void CountTraffic(size_t direction, const Frame& frame);
  // Passes messages to the compute side until none is left.
  void Deliver();

  ComputeSide* const compute_;
  Meters* const meters_;  // Of the compute side; may be null.
  // Tells what the system counts of the process; null if it has other members.
  const std::unique_ptr<FileSystem> own_process_;
  const TimeMs dead_after_ms_;
  MembershipClient membership_;
  PsClient client_;
  std::shared_ptr<const View> view_;  // The last view that the compute side was told.
  bool ended_ = false;                // OnEnd has been called.
};

}  // namespace hdps
