// The interface between a worker's node (a state machine on the loop thread) and its compute side
// (a thread that reads, computes and waits). In the simulator both run in one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/protocol/activity.h"
#include "common/telemetry/meters.h"
#include "worker/exchange/server_request.h"

namespace hdps {

struct Command;
struct CommandDone;
struct Heartbeat;
struct KvGet;
struct KvPut;
struct KvValue;
struct View;

// Receives what the node reports to the compute side.
class ComputeSide {
 public:
  virtual ~ComputeSide() = default;
  // The cluster has formed or changed; `rank` is this worker's.
  virtual void OnView(std::shared_ptr<const View> view, WorkerId rank) = 0;
  virtual void OnCommand(const Command& command) = 0;
  // The requests of a Start() have ended: `replies`, in the order of the requests, if all servers
  // have answered, else the first error. kTimeout names the server that did not answer, and the
  // time.
  virtual void OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) = 0;
  virtual void OnKvValue(const KvValue& value) = 0;
  // The job was refused, aborted or is finished; no other call follows.
  virtual void OnEnd(Status status) = 0;
  // Returns the current activity without `awaited`. Called on the loop thread.
  virtual Activity CurrentActivity() const { return {}; }
  // Returns what holds this worker up from outside, for people, or "". Called on the loop thread.
  virtual std::string Trouble() const { return {}; }
  // The worker's counters; null: it has none, and its heartbeats no figures.
  virtual Meters* meters() { return nullptr; }
};

// Requests of the compute side to the node. Called on the loop thread.
class ComputeRequests {
 public:
  virtual ~ComputeRequests() = default;
  // Sends each frame under a request id of its own and repeats it until its reply has come. Sends
  // `then` once all of them, and those of earlier tickets that had a `then`, are answered with kOk;
  // the replies to `then` are not reported.
  virtual void Start(Ticket ticket, std::vector<ServerRequest> requests,
                     std::vector<ServerRequest> then) = 0;
  // Drops the ticket: OnReplies reports kCancelled, unless it has been called already.
  virtual void Cancel(Ticket ticket) = 0;
  virtual void Answer(const CommandDone& done) = 0;
  virtual void Report(const Heartbeat& progress) = 0;  // Sent with the next heartbeats.
  virtual void Put(const KvPut& put) = 0;
  virtual void Get(const KvGet& get) = 0;
  // Returns true if the job waits for a process in a lost member's place. Deadlines stand then.
  virtual bool place_empty() const = 0;
  virtual void Fail(Status status) = 0;  // This worker cannot go on: tells the scheduler and ends.
};

}  // namespace hdps
