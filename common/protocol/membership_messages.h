// Messages between the scheduler and its members, except commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/activity.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/tallies.h"

namespace hdps {

// Repeated until answered by a View or JoinRefused.
struct JoinRequest {
  static constexpr MessageKind kKind = MessageKind::kJoinRequest;
  Role role = Role::kWorker;
  int32_t rank = -1;         // -1 lets the scheduler choose.
  std::string address;       // Where others dial this server; empty for a worker.
  uint64_t job_digest = 0;   // JobDigest() of the sender's job: all members must have the same.
  uint32_t num_servers = 0;  // As given to the sender; 0 leaves it to the scheduler.
  uint32_t num_workers = 0;
  std::string host;          // For people: host name and process id.
  std::string process = {};  // OwnProcessName(); lets others on its machine see that it has ended.
  bool records = false;      // A server that records the order of requests (--record).
};

// Refuses a JoinRequest. The member prints the message and exits with the status, unless it stands
// by.
struct JoinRefused {
  static constexpr MessageKind kKind = MessageKind::kJoinRefused;
  int32_t exit_status = 2;
  std::string message;
  // There is no place now: the member logs that and keeps asking, for the next free place.
  bool stands_by = false;
};

// A server that has not answered a worker for so long.
struct SilentServer {
  PeerId peer;
  int64_t for_ms = 0;
};

// The work that a server had with one shard since its process began, and the shard's size now.
struct ShardLoad {
  ShardId shard;
  uint64_t busy_ns = 0;  // Time to serve its requests.
  uint64_t rows = 0;     // Rows that were read or updated.
  uint64_t bytes = 0;
  friend bool operator==(const ShardLoad&, const ShardLoad&) = default;
};

struct Heartbeat {
  static constexpr MessageKind kKind = MessageKind::kHeartbeat;
  ViewId view;                 // The newest view that the sender knows.
  Clock clock = 0;             // Workers: steps finished.
  uint64_t examples = 0;       // Workers: trained on since the process started.
  double loss_sum = 0;         // Workers: sum of the losses of those examples.
  double epoch_progress = 0;   // Workers: part of the epoch's bytes read, in [0, 1].
  uint64_t staleness_max = 0;  // Servers: the most clocks by which a pull was ahead of the slowest.
  CacheTally cache = {};       // Workers: counts of the cached rows.
  uint64_t number = 0;         // Counts this process' heartbeats from 1.
  uint64_t heard = 0;          // The largest number that was answered.
  std::string trouble = {};    // For people: what holds this member up, or empty.
  // Workers: servers that have not answered for long.
  std::vector<SilentServer> silent = {};
  Activity activity = {};
  // Workers whose model is another program's: it has no more examples.
  bool finished = false;
  // The same workers: a checkpoint is asked for at this clock or later; 0 if none is.
  Clock wants_checkpoint = 0;
  // The sender's figures, laid out as FigureLayout says for its role.
  std::vector<uint64_t> readings = {};
  std::vector<ShardLoad> loads = {};  // Servers: of the shards of which it is the primary.
};

// What the members do for a trace; the phases follow each other.
enum class TracePhase : uint8_t {
  kNone = 0,
  kMeasure,  // Heartbeats go out at every tick, to bring the clocks together.
  kRecord,   // The steps [from, until) are recorded.
  kClose,    // What was recorded is sent.
};
struct TraceOrder {
  uint64_t trace = 0;  // Number of the trace; 0: none.
  TracePhase phase = TracePhase::kNone;
  Clock from = 0, until = 0;
  friend bool operator==(const TraceOrder&, const TraceOrder&) = default;
};

// The scheduler's answer. If it has a newer view than the member, it sends that next.
struct HeartbeatAck {
  static constexpr MessageKind kKind = MessageKind::kHeartbeatAck;
  ViewId view;
  uint64_t number = 0;  // Number of the heartbeat; 0: this answers none.
  int64_t time_ns = 0;  // The scheduler's clock; 0: not told.
  TraceOrder trace = {};
  bool place_empty = false;  // A member is lost, and the job waits for one in its place.
};

// A member was told to stop (SIGTERM). The scheduler drains, saves a checkpoint and finishes the
// job.
struct StopRequest {
  static constexpr MessageKind kKind = MessageKind::kStopRequest;
  std::string reason;
};

// A member was told to leave (SIGTERM with --on_term=leave), and the job is to go on without it.
// Repeated until the scheduler lets it go by an Abort with status 3, or the job ends.
struct LeaveRequest {
  static constexpr MessageKind kKind = MessageKind::kLeaveRequest;
  std::string reason;
  bool goes = false;  // It ends now, whatever was handed over.
};

// From the scheduler: the job cannot go on, or this member has left it, and the member exits with
// the status. From a member: it cannot go on itself.
struct Abort {
  static constexpr MessageKind kKind = MessageKind::kAbort;
  int32_t exit_status = 3;
  std::string message;
  bool member_only = false;  // From a member: another process in its place may do better.
  uint64_t reign = 0;        // From the scheduler: as View::reign.
};

}  // namespace hdps
