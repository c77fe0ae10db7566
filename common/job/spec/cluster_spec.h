// The settings of the cluster: shards, deadlines, limits.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/enum_words.h"

namespace hdps {

// The reaction to a lost worker that is not replaced in time.
enum class OnWorkerLoss : uint8_t { kWait, kShrink };
constexpr auto WordsOf(OnWorkerLoss) {
  using enum OnWorkerLoss;
  return EnumWords(kWait, "wait", kShrink, "shrink");
}

// Whether shards move from a busy server to others while the job goes on.
enum class Balance : uint8_t { kAuto, kOff };
constexpr auto WordsOf(Balance) {
  using enum Balance;
  return EnumWords(kAuto, "auto", kOff, "off");
}

struct ClusterSpec {
  uint32_t shards = 32;  // A power of two; fixed for the lifetime of the tables.
  uint32_t heartbeat_ms = 500;
  uint32_t dead_after_ms = 3000;
  // Seconds to wait for a replacement of a lost member. Then the job goes on without it, or ends.
  uint32_t replace_after_s = 60;
  OnWorkerLoss on_worker_loss = OnWorkerLoss::kWait;
  Balance balance = Balance::kAuto;
  uint32_t balance_after_s = 60;       // So long a server must be too busy before its shards move.
  uint32_t replicas = 0;               // Copies of each row on other servers.
  uint32_t scheduler_timeout_s = 120;  // Members go on this long without the scheduler.
  uint32_t rendezvous_timeout_s = 600;
  uint32_t request_retry_ms = 2000;   // A pull or push is sent again after this time.
  uint32_t request_timeout_s = 120;   // A pull or push is given up after this time.
  uint32_t pushes_in_flight_max = 8;  // Unacknowledged pushes of a worker at one server.
  uint64_t memory_limit = 0;  // Bytes of one server in total; 0 for all memory of the machine.
  // Tables that are read by the same features share the rows of a server; changes no result.
  bool join_tables = true;
  std::string spill_path;  // Folder for rows beyond it; the server picks one if empty.
};

}  // namespace hdps
