// Makes a sample of a job's status, and lists its fields.
#pragma once

#include <tuple>

#include "common/protocol/activity.h"
#include "common/protocol/status_messages.h"

namespace hdps {

inline bool operator==(const MemberStatus& a, const MemberStatus& b) {
  const auto fields = [](const MemberStatus& m) {
    const auto& [name, clock, silent_ms, peer, activity, trouble, pending_command, pending_ms,
                 deaf] = m;
    return std::tie(name, clock, silent_ms, peer, activity, trouble, pending_command, pending_ms,
                    deaf);
  };
  return fields(a) == fields(b);
}

namespace testing_samples {

inline auto Fields(const StatusReply& m) {
  const auto& [a, b, c, d, e, heartbeat_ms, want, missing, reason, missing_ms, patience_ms, shards,
               ratio] = m;
  return std::tie(a, b, c, d, e, heartbeat_ms, want, missing, reason, missing_ms, patience_ms,
                  shards, ratio);
}

inline StatusReply SampleStatus(const Activity& activity) {
  return {"census",
          "train",
          {1},
          40,
          {{"server 0 (a:1)", 41, 3, {12}, activity, "no space", "save", 70, true},
           {"worker 0", 40, 0}},
          500,
          Want::kLost,
          "1 of 2 workers",
          "worker 1 is lost",
          800,
          900,
          {{{3}, {1}, 0.25, 1e5, 4096}, {{31}, {0}, 0.125, 7, 0}},
          1.5};
}

}  // namespace testing_samples
}  // namespace hdps
