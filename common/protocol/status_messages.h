// What those who are no members of a job ask its scheduler, and what they are told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/activity.h"
#include "common/protocol/message_kind.h"

namespace hdps {

// How the job is, for whoever asks: no member, and told nothing that it could act on.
struct StatusRequest {
  static constexpr MessageKind kKind = MessageKind::kStatusRequest;
};

struct MemberStatus {
  std::string name;          // "worker 1 (host-a:4711)"
  Clock clock = 0;           // Steps a worker has finished; steps applied at a server.
  int64_t silent_ms = 0;     // Since the scheduler last heard of it.
  uint64_t number = 0;       // From 1 on, in this reply alone: nobody is told peer ids.
  Activity activity = {};    // As it said then; whom it awaits stands there by `number`.
  std::string trouble = {};  // Heartbeat::trouble.
  std::string told = {};     // The command that it has not answered; empty: none.
  int64_t told_ms = 0;       // For so long.
  bool deaf = false;         // It speaks and does not hear what it is answered.
};

// Which members the scheduler waits for.
enum class Want : uint8_t {
  kNobody = 0,
  kFirst,      // Those that the job begins with.
  kLost,       // Others in the places of those that are lost.
  kNewcomers,  // More, as somebody has asked for; training goes on.
  kCopies,     // Servers for copies of rows; training goes on.
};

struct StatusReply {
  static constexpr MessageKind kKind = MessageKind::kStatusReply;
  std::string job;                    // Its name.
  std::string state;                  // For people: who is missing, or what is being done.
  ViewId view;                        // 0: the cluster has not formed yet.
  Clock clock = 0;                    // Steps that every worker has finished.
  std::vector<MemberStatus> members;  // Servers, then workers, by rank; none without a view.
  uint32_t heartbeat_ms = 0;          // Each member says something so often.
  Want want = Want::kNobody;
  std::string missing = {};  // "1 of 2 workers (worker 1)", or what else is missing.
  std::string reason = {};   // How those were lost; who was refused last, and why.
  int64_t missing_ms = 0;    // For so long.
  int64_t patience_ms = 0;   // So much longer they are waited for; 0: without a limit.
};

// Other numbers of servers or workers; 0 and relative: as many as now.
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

}  // namespace hdps
