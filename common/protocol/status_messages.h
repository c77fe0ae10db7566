// Messages between the scheduler and clients that are not members of the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/activity.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/view.h"

namespace hdps {

// Asks for the status of the job. The sender is not a member and gets nothing that it could act on.
struct StatusRequest {
  static constexpr MessageKind kKind = MessageKind::kStatusRequest;
};

struct MemberStatus {
  std::string name;          // "worker 1 (host-a:4711)"
  Clock clock = 0;           // Steps a worker has finished; steps applied at a server.
  int64_t silent_ms = 0;     // Since the scheduler last heard from it.
  uint64_t number = 0;       // Counts from 1 within this reply; peer ids are not revealed.
  Activity activity = {};    // As last reported; members that it awaits are given by `number`.
  std::string trouble = {};  // As last reported in Heartbeat::trouble.
  std::string pending_command = {};  // The command that it has not answered yet, or empty.
  int64_t pending_ms = 0;            // Time since the command was sent.
  bool deaf = false;                 // It sends heartbeats but does not receive the answers.
};

// The members that the scheduler waits for.
enum class Want : uint8_t {
  kNobody = 0,
  kFirst,      // The members that the job starts with.
  kLost,       // Replacements of lost members.
  kNewcomers,  // Additional members that were asked for; training goes on.
  kCopies,     // Servers for copies of rows; training goes on.
};

// One of the shards that keep their server busiest.
struct HotShard {
  ShardId shard;
  ServerId server;  // The number of its group.
  double busy = 0;  // The part of the time in which the server worked on it.
  double rows_per_second = 0;
  uint64_t bytes = 0;
  friend bool operator==(const HotShard&, const HotShard&) = default;
};

struct StatusReply {
  static constexpr MessageKind kKind = MessageKind::kStatusReply;
  std::string job;                    // Name of the job.
  std::string state;                  // For people: who is missing, or what is being done.
  ViewId view;                        // 0 until the cluster has formed.
  Clock clock = 0;                    // Steps finished by every worker.
  std::vector<MemberStatus> members;  // Servers, then workers, by rank; empty without a view.
  uint32_t heartbeat_ms = 0;          // Interval of the members' heartbeats.
  Want want = Want::kNobody;
  std::string missing = {};               // "1 of 2 workers (worker 1)", or what else is missing.
  std::string reason = {};                // How they were lost; who was refused last, and why.
  int64_t missing_ms = 0;                 // Time for which they have been missing.
  int64_t patience_ms = 0;                // Time until the scheduler gives up; 0 if it never does.
  std::vector<HotShard> hot_shards = {};  // The hottest first; empty: no server has told.
  double busiest_over_mean = 0;  // Busy time of the busiest server over the mean; 0: not known.
};

// Changes the numbers of servers or workers; 0 and relative leaves a number unchanged.
struct ScaleRequest {
  static constexpr MessageKind kKind = MessageKind::kScaleRequest;
  int32_t servers = 0;
  bool servers_relative = true;
  int32_t workers = 0;
  bool workers_relative = true;
};
struct ScaleReply {
  static constexpr MessageKind kKind = MessageKind::kScaleReply;
  Code code = Code::kOk;
  std::string message;  // What will be done, or why not.
};

// Asks for the job, so that a program can join as a worker without its file.
struct JobRequest {
  static constexpr MessageKind kKind = MessageKind::kJobRequest;
};
struct JobReply {
  static constexpr MessageKind kKind = MessageKind::kJobReply;
  Code code = Code::kOk;
  std::string message;
  // The job as the scheduler runs it: ParseJob() makes a job with the same JobDigest() of it.
  Buffer text;
};

// Asks for a panel of the job's page: its name, as in the path /api/v1/NAME.
struct PanelRequest {
  static constexpr MessageKind kKind = MessageKind::kPanelRequest;
  std::string panel;
  uint64_t since = 0;  // Version of the picture that the sender has; 0: none.
};
struct PanelReply {
  static constexpr MessageKind kKind = MessageKind::kPanelReply;
  Code code = Code::kOk;
  std::string message;
  Buffer text;  // The JSON that GET /api/v1/NAME?since=VERSION answers.
};

// Asks where the rows of the job are, to read some from its servers without being a member.
struct RowPlacesRequest {
  static constexpr MessageKind kKind = MessageKind::kRowPlacesRequest;
};
struct RowPlacesReply {
  static constexpr MessageKind kKind = MessageKind::kRowPlacesReply;
  Code code = Code::kOk;
  std::string message;
  // The servers are those of the newest view. Workers and backups are left out, for readers do not
  // ask them.
  ViewId view;
  std::vector<Member> servers;
  ShardMap shards;
};

// The refusal to read rows for callers that prove nothing and may come from other machines.
inline constexpr const char* kReadersNeedKeys =
    "it listens beyond its machine without keys, so its rows are read by members of the job alone; "
    "hdps keygen makes keys, --keys=DIR uses them";

}  // namespace hdps
