// A server's or worker's side of the membership: joining, heartbeats, views, commands.
#pragma once

#include <cstdint>
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
struct SilentServer;
struct View;

// Who a server or worker is, and how the cluster is reached.
struct NodeIdentity {
  PeerId self;                    // As its transport was told.
  std::string scheduler_address;  // Where to dial it.
  std::string own_address;        // Where a server listens, as others dial it; a worker: empty.
  int32_t rank = -1;              // -1: the scheduler picks.
  uint32_t num_servers = 0, num_workers = 0;  // As told on the command line; 0 = not told.
  std::string host;                           // For people: host name and process number.
  std::string process = {};  // OwnProcessName(), where the process is this member's alone.
};

struct MembershipOptions {
  Role role = Role::kWorker;
  NodeIdentity identity;
  uint64_t job_digest = 0;
  uint32_t heartbeat_ms = 500;
  int64_t scheduler_timeout_ms = 120'000;  // Silence of the scheduler after which this member ends.
  uint32_t rendezvous_timeout_s = 600;
};

// Part of a node: shares its frames, ticks and output.
//
// Invariant: views only grow; every command comes out of TakeCommands() once, those that wait
// together in order of their ids, and a repeated command is answered with the answer it already
// has. A command that was lost on the way comes again, so it may come out after one that followed
// it. A command of another view than the newest known here is not taken: an older one is of a
// scheduler, or of work, that counts no more, and a newer one comes again when its view is here.
class MembershipClient {
 public:
  explicit MembershipClient(const MembershipOptions& options);
  ~MembershipClient();

  // True when the frame was one of membership's and has been dealt with.
  bool OnFrame(PeerId from, const Frame& frame);
  void OnTick(TimeMs now);
  Output TakeOutput();

  // Null until the cluster has formed. Peers of servers are dialed when a view arrives.
  std::shared_ptr<const View> view() const;
  uint32_t rank() const;  // Requires: view() is there.
  std::vector<Command> TakeCommands();
  void Answer(const CommandDone& done);
  // Clock, examples and what else a step changes; the next three report the rest.
  void Report(const Heartbeat& progress);
  void ReportTrouble(const std::string& trouble);
  void ReportSilent(std::vector<SilentServer> servers);
  void ReportActivity(Activity activity);
  void RequestStop(const std::string& reason);
  void Put(const KvPut& put);  // Repeated until acknowledged.
  void Get(const KvGet& get);  // Repeated until the value is found.
  std::vector<KvValue> TakeKvValues();
  // Tells the scheduler that this member cannot go on, and ends with `exit_status`.
  void Fail(int exit_status, const std::string& message);
  // The same with status 3, where another process may take this one's place: the job goes on.
  void FailAlone(const std::string& message);
  void Fail(const Status& status);  // As its code says.

  // Refused, aborted, the scheduler is gone, or a kFinish has been answered.
  bool ended() const;
  int exit_status() const;
  const std::string& reason() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
