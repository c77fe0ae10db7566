// Membership: what a server or worker and the scheduler tell each other beside commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/activity.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/tallies.h"

namespace hdps {

// Sent again until answered by a View or JoinRefused.
struct JoinRequest {
  static constexpr MessageKind kKind = MessageKind::kJoinRequest;
  Role role = Role::kWorker;
  int32_t rank = -1;         // -1: the scheduler picks.
  std::string address;       // Where this server listens; empty for a worker.
  uint64_t job_digest = 0;   // JobDigest() of the sender's job: all must train the same thing.
  uint32_t num_servers = 0;  // As the sender was told; 0 = whatever the scheduler says.
  uint32_t num_workers = 0;
  std::string host;          // For people: host name and process number.
  std::string process = {};  // OwnProcessName(): others on its machine can see that it has ended.
};

// Final, unless the member stands by: it prints the message and exits with the status.
struct JoinRefused {
  static constexpr MessageKind kKind = MessageKind::kJoinRefused;
  int32_t exit_status = 2;
  std::string message;
  // There is no place now: the member says so and goes on asking, for the next one that is free.
  bool stands_by = false;
};

// A server that has said nothing to a worker for so long, although it was asked.
struct SilentServer {
  PeerId peer;
  int64_t for_ms = 0;
};

struct Heartbeat {
  static constexpr MessageKind kKind = MessageKind::kHeartbeat;
  ViewId view;                 // The newest the sender knows.
  Clock clock = 0;             // Workers: steps finished.
  uint64_t examples = 0;       // Workers: trained on since the start of the process.
  double loss_sum = 0;         // Workers: sum of the losses of those examples.
  double epoch_progress = 0;   // Workers: part of the epoch's bytes read, 0..1.
  uint64_t staleness_max = 0;  // Servers: largest number of clocks a pull was ahead of the slowest.
  CacheTally cache = {};       // Workers.
  uint64_t number = 0;         // Of this process' heartbeats, from 1.
  uint64_t heard = 0;          // The largest number whose answer has come.
  std::string trouble = {};    // For people: what holds this member up; empty: nothing.
  std::vector<SilentServer> silent = {};  // Workers.
  Activity activity = {};
};

// The scheduler's answer; a newer view than the member's is sent after it.
struct HeartbeatAck {
  static constexpr MessageKind kKind = MessageKind::kHeartbeatAck;
  ViewId view;
  uint64_t number = 0;  // Of the heartbeat.
};

// A member was told to stop (SIGTERM): the scheduler drains, checkpoints and finishes the job.
struct StopRequest {
  static constexpr MessageKind kKind = MessageKind::kStopRequest;
  std::string reason;
};

// The job cannot go on; the member exits with the status. Of a member: it cannot go on itself.
struct Abort {
  static constexpr MessageKind kKind = MessageKind::kAbort;
  int32_t exit_status = 3;
  std::string message;
  bool member_only = false;  // Of a member: another process in its place may do better.
};

}  // namespace hdps
