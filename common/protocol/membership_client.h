// A member's side of the membership: joining, heartbeats, views, commands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/node.h"

namespace hdps {

struct Activity;
struct Command;
struct CommandDone;
struct Heartbeat;
struct KvGet;
struct KvPut;
struct KvValue;
struct ShardLoad;
struct SilentServer;
struct View;
class SchedulerLocator;
class SpanRecorder;

// The identity of a server or worker, and how it reaches the cluster.
struct NodeIdentity {
  PeerId self;                                // The id that its transport has.
  std::string scheduler_address;              // Value of --scheduler.
  std::string own_address;                    // Where others dial a server; empty for a worker.
  int32_t rank = -1;                          // -1 lets the scheduler choose.
  uint32_t num_servers = 0, num_workers = 0;  // As given on the command line; 0 if not given.
  std::string host;                           // For people: host name and process id.
  std::string process = {};  // OwnProcessName(), if the process runs no other member.
  bool records = false;      // As in JoinRequest.
  // Knows where the scheduler is dialed; null: always at `scheduler_address`.
  std::shared_ptr<SchedulerLocator> locator = nullptr;
};

struct MembershipOptions {
  Role role = Role::kWorker;
  NodeIdentity identity;
  uint64_t job_digest = 0;
  uint32_t heartbeat_ms = 500;
  // This member ends after so long a silence of the scheduler.
  int64_t scheduler_timeout_ms = 120'000;
  uint32_t rendezvous_timeout_s = 600;
};

// Joins, sends heartbeats, and takes views and commands for a node, which passes frames and ticks
// to it and sends its output.
//
// Invariant: views only grow. Every command comes out of TakeCommands() once, and commands that are
// available together come in order of their ids. A repeated command is answered with the answer it
// already has. A command that was lost in transit is repeated, so it may come out after a later
// one. A command is ignored unless its view is the newest one known here: an older view belongs to
// a replaced scheduler or to dropped work, and a command of a newer view is repeated until that
// view has arrived.
class MembershipClient {
 public:
  explicit MembershipClient(const MembershipOptions& options);
  ~MembershipClient();

  // Returns true if the frame belonged to the membership; it was then handled.
  bool OnFrame(PeerId from, const Frame& frame);
  void OnTick(TimeMs now);
  Output TakeOutput();

  // Returns null until the cluster has formed. Servers are dialed when a view arrives.
  std::shared_ptr<const View> view() const;
  uint32_t rank() const;  // Requires: view() is not null.
  // Returns true if the job waits for a process in a lost member's place, by the scheduler's last
  // word.
  bool place_empty() const;
  std::vector<Command> TakeCommands();
  void Answer(const CommandDone& done);
  // Sets what the next heartbeat reports: clock, examples and whatever else a step changes. The
  // next three functions set the rest.
  void Report(const Heartbeat& progress);
  void ReportTrouble(const std::string& trouble);
  void ReportSilent(std::vector<SilentServer> servers);
  void ReportActivity(Activity activity);
  // Lets every heartbeat carry the figures that `read` returns. It is called when one is sent.
  void ReportReadings(std::function<std::vector<uint64_t>()> read);
  // Lets every heartbeat carry the loads of the shards that `read` returns, likewise.
  void ReportLoads(std::function<std::vector<ShardLoad>()> read);
  // Lets the scheduler ask for what `recorder` records; it must outlive this client.
  void UseRecorder(SpanRecorder& recorder);
  void RequestStop(const std::string& reason);
  // Asks the scheduler to let this member go, which ends it with status 3; the job goes on. After
  // `within_ms` it goes all the same. If the job ends meanwhile, this member ends with it.
  void RequestLeave(const std::string& reason, TimeMs within_ms);
  void Put(const KvPut& put);  // Repeated until acknowledged.
  void Get(const KvGet& get);  // Repeated until the value is found.
  std::vector<KvValue> TakeKvValues();
  // Tells the scheduler that this member, and with it the job, cannot go on, and ends with
  // `exit_status`.
  void Fail(int exit_status, const std::string& message);
  // Ends with status 3 but lets the job go on, because another process may take this one's place.
  void FailAlone(const std::string& message);
  void Fail(const Status& status);  // The same by the status' code.

  // Is true if this member was refused or aborted, the scheduler is gone, or a kFinish was
  // answered.
  bool ended() const;
  // Returns the number of views, commands and aborts of schedulers of older reigns.
  uint64_t refused_orders() const;
  int exit_status() const;
  const std::string& reason() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
