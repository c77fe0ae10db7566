// Keeps what servers tell of the work with their shards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/membership_messages.h"

namespace hdps {

struct View;

// The work with one shard in a period.
struct ShardWork {
  double busy_seconds = 0;
  double rows = 0;
  uint64_t bytes = 0;  // Size of the shard at the end.
};

// The work with all shards in one period.
struct WorkPeriod {
  TimeMs lasted_ms = 0;
  std::vector<ShardWork> shards;
};

// Invariant: counts of one shard are compared only if the same process told them, and both in the
// present place of the shards.
class LoadBook {
 public:
  // Forgets everything if shards have moved, or their primaries are others.
  void OnView(const View& view, TimeMs now);
  void Take(PeerId from, const std::vector<ShardLoad>& loads);
  TimeMs begun() const { return begun_; }
  // Begins a period, and returns the one before; none if a primary has not told the work of all its
  // shards at both ends.
  std::optional<WorkPeriod> Turn(TimeMs now);

 private:
  struct Told {
    PeerId from;  // 0: nobody.
    ShardLoad load;
  };
  std::vector<PeerId> primaries_;  // [shards]
  std::vector<Told> newest_, before_;
  TimeMs begun_ = 0;
};

}  // namespace hdps
