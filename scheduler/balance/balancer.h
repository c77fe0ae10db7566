// Watches how busy servers are, and says when shards should move.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/view.h"
#include "scheduler/balance/balance_plan.h"
#include "scheduler/balance/load_book.h"

namespace hdps {

struct ClusterSpec;
struct StatusReply;

// A server is judged by several periods in a row, which last cluster.balance_after_s together.
//
// Invariant: between two moves at least twice that time passes, and a plan is made of periods in
// all of which one server was too busy, the shards stayed where they are, and the job trained.
class Balancer {
 public:
  static constexpr size_t kPeriods = 4;

  explicit Balancer(const ClusterSpec& cluster);

  void OnHeartbeat(PeerId from, const std::vector<ShardLoad>& loads) { book_.Take(from, loads); }
  // Called with every tick. `trains`: the job has trained since the last call, otherwise periods
  // begin anew. `may_move`: a plan can be carried out now.
  std::optional<BalancePlan> Look(const View& view, bool trains, bool may_move, TimeMs now);
  // Notes that shards have moved for a plan, or that the plan was given up.
  void Moved(uint32_t shards, TimeMs now);

  // Adds the hottest shards of the last period.
  void AddTo(StatusReply* status) const;
  uint64_t shards_moved() const { return shards_moved_; }  // For all plans together.

 private:
  // Returns whether one and the same server was too busy in all of the last kPeriods: on a machine
  // that others use too, now this server and now that one waits for a core.
  bool OneIsTooBusy() const;
  WorkPeriod Together() const;

  const bool moves_;
  const TimeMs period_ms_, after_ms_;
  LoadBook book_;
  View view_;                       // The view of the last Look().
  std::deque<WorkPeriod> periods_;  // The last ones, at most kPeriods, the newest last.
  std::optional<WorkPeriod> last_;
  TimeMs not_before_ = 0;
  uint64_t shards_moved_ = 0;
};

}  // namespace hdps
