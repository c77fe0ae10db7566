// The seam between a worker's node (a state machine on the loop thread) and its compute side (a
// thread that reads, computes and waits). In the simulator both run in one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/protocol/activity.h"
#include "worker/exchange/server_request.h"

namespace hdps {

struct Command;
struct CommandDone;
struct Heartbeat;
struct KvGet;
struct KvPut;
struct KvValue;
struct View;

// What the node tells the compute side.
class ComputeSide {
 public:
  virtual ~ComputeSide() = default;
  // The cluster has formed, or changed; `rank` is ours.
  virtual void OnView(std::shared_ptr<const View> view, WorkerId rank) = 0;
  virtual void OnCommand(const Command& command) = 0;
  // All servers of a Start() have answered (replies in the order of the requests), or the first
  // error: kTimeout names who did not answer and for how long.
  virtual void OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) = 0;
  virtual void OnKvValue(const KvValue& value) = 0;
  // Nothing more will come: the job was refused, aborted or is finished.
  virtual void OnEnd(Status status) = 0;
  // What it is at, but for `awaited`. On the loop thread.
  virtual Activity Doing() const { return {}; }
};

// What the compute side asks of the node. Called on the loop thread.
class ComputeRequests {
 public:
  virtual ~ComputeRequests() = default;
  // Sends each frame under a request id of its own and repeats it until its reply has come. When
  // all are answered with kOk, and so are those of the tickets before that had a `then`, sends
  // `then`, of whose answers nothing is said.
  virtual void Start(Ticket ticket, std::vector<ServerRequest> requests,
                     std::vector<ServerRequest> then) = 0;
  // Its answers are not wanted any more: OnReplies with kCancelled, unless it has come already.
  virtual void Cancel(Ticket ticket) = 0;
  virtual void Answer(const CommandDone& done) = 0;
  virtual void Report(const Heartbeat& progress) = 0;  // Goes out with the next heartbeats.
  virtual void Put(const KvPut& put) = 0;
  virtual void Get(const KvGet& get) = 0;
  virtual void Fail(Status status) = 0;  // This worker cannot go on: tell the scheduler and end.
};

}  // namespace hdps
