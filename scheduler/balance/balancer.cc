// Judges the periods one after the other.
#include "scheduler/balance/balancer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/job/spec/cluster_spec.h"
#include "common/protocol/status_messages.h"

namespace hdps {
namespace {

constexpr size_t kHotShardsTold = 8;

}  // namespace

Balancer::Balancer(const ClusterSpec& cluster)
    : moves_(cluster.balance == Balance::kAuto && cluster.memory_limit == 0),
      // A period has news of every server.
      period_ms_(std::max<TimeMs>(TimeMs{1000} * cluster.balance_after_s / TimeMs{kPeriods},
                                  TimeMs{2} * cluster.heartbeat_ms)),
      after_ms_(TimeMs{1000} * cluster.balance_after_s) {}

std::optional<BalancePlan> Balancer::Look(const View& view, bool trains, bool may_move,
                                          TimeMs now) {
  if (view.view != view_.view) {
    if (view.placed != view_.placed) periods_.clear(), last_.reset();
    view_ = view;
    book_.OnView(view, now);
  }
  if (!trains) {  // Of a while at rest nothing follows.
    periods_.clear();
    book_.Turn(now);
    return std::nullopt;
  }
  if (now - book_.begun() < period_ms_) return std::nullopt;
  std::optional<WorkPeriod> period = book_.Turn(now);
  if (!period) {
    periods_.clear();
    return std::nullopt;
  }
  last_ = period;
  periods_.push_back(*std::move(period));
  if (periods_.size() > kPeriods) periods_.pop_front();
  if (!moves_ || !may_move || now < not_before_ || !OneIsTooBusy()) return std::nullopt;
  return PlanBalance(view.shards, view.servers.size(), Together());
}

bool Balancer::OneIsTooBusy() const {
  const size_t servers = view_.servers.size();
  std::vector<bool> too_busy(servers, periods_.size() == kPeriods);
  for (const WorkPeriod& period : periods_) {
    const std::vector<double> busy = BusySeconds(view_.shards, servers, period);
    const double all = std::accumulate(busy.begin(), busy.end(), 0.0);
    for (size_t s = 0; s < servers; ++s) {
      if (busy[s] * static_cast<double>(servers) <= kTooBusy * all) too_busy[s] = false;
    }
  }
  return std::ranges::count(too_busy, true) > 0;
}

WorkPeriod Balancer::Together() const {
  WorkPeriod sum = periods_.front();
  for (size_t p = 1; p < periods_.size(); ++p) {
    sum.lasted_ms += periods_[p].lasted_ms;
    for (size_t s = 0; s < sum.shards.size(); ++s) {
      const ShardWork& one = periods_[p].shards[s];
      sum.shards[s].busy_seconds += one.busy_seconds;
      sum.shards[s].rows += one.rows;
      sum.shards[s].bytes = one.bytes;
    }
  }
  return sum;
}

void Balancer::Moved(uint32_t shards, TimeMs now) {
  periods_.clear();
  not_before_ = now + 2 * after_ms_;
  shards_moved_ += shards;
}

void Balancer::AddTo(StatusReply* status) const {
  if (!last_ || last_->lasted_ms <= 0 || last_->shards.size() != view_.shards.num_shards()) return;
  const double seconds = static_cast<double>(last_->lasted_ms) / 1000;
  status->busiest_over_mean =
      BusiestOverMean(BusySeconds(view_.shards, view_.servers.size(), *last_));
  for (uint32_t s = 0; s < view_.shards.num_shards(); ++s) {
    const ShardWork& work = last_->shards[s];
    if (work.busy_seconds <= 0) continue;
    status->hot_shards.push_back(
        {{s}, view_.shards.owner[s], work.busy_seconds / seconds, work.rows / seconds, work.bytes});
  }
  std::ranges::stable_sort(status->hot_shards, std::ranges::greater(), &HotShard::busy);
  if (status->hot_shards.size() > kHotShardsTold) status->hot_shards.resize(kHotShardsTold);
}

}  // namespace hdps
