// Follows the views of the job: which process has which place, and what is known of a place when
// another process takes it.
#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/view.h"
#include "server/row_service.h"

namespace hdps {
namespace {

// Limit of former processes whose last changes a backup still takes; they arrive at once.
constexpr size_t kFormerMax = 64;

}  // namespace

void RowService::OnView(const View& view, const std::vector<ShardId>& shards) {
  view_ = view.view;
  if (shards_ == nullptr || shards_->ids() != shards) {
    shards_moved_ = shards_ != nullptr;
    lists_.clear();  // Were cut by the former shards.
    pulled_.Clear();
    shards_ = std::make_unique<ShardSet>(job_, executor_, shards, memory_, std::move(shards_));
    watch_.OnShards(shards);
  }
  std::map<PeerId, WorkerId> workers;
  for (const Member& member : view.workers) workers[member.peer] = {member.rank};
  for (const auto& [peer, worker] : workers) {
    clocks_.Join(worker);
    progress_.try_emplace(worker, clocks_.of(worker), job_.cluster.pushes_in_flight_max);
    stands_.Join(worker, clocks_.of(worker));
  }
  for (const auto& [peer, worker] : workers_) {
    if (workers.count(peer) > 0) continue;
    ledgers_.erase(peer);
    store_ledgers_.erase(peer);
    lists_.erase(peer);
    pulled_.RemoveWorker(peer);
    norm_.RemoveWorker(peer);
    gate_.RemoveWorker(peer);
    const bool rank_stays =
        std::any_of(workers.begin(), workers.end(),
                    [&, rank = worker](const auto& other) { return other.second == rank; });
    if (rank_stays) {
      former_.emplace_back(peer, worker);
      if (former_.size() > kFormerMax) former_.erase(former_.begin());
      continue;
    }
    clocks_.Leave(worker);
    progress_.erase(worker);
    stands_.Leave(worker);
    kept_.Leave(worker);
  }
  // A change of a former process may have made one anew.
  std::erase_if(ledgers_, [&](const auto& ledger) { return workers.count(ledger.first) == 0; });
  workers_ = std::move(workers);
  Progress();
}

void RowService::DropRows() {
  const std::vector<ShardId> ids = shards_->ids();
  shards_.reset();
  shards_ = std::make_unique<ShardSet>(job_, executor_, ids, memory_);
}

void RowService::Reset(Clock clock, std::unique_ptr<ShardSet> shards) {
  CHECK(shards == nullptr || shards->ids() == shards_->ids());
  if (shards != nullptr) shards_ = std::move(shards);
  clocks_.Reset(clock);
  ForgetPushes();  // The new rows hold none of them.
  ended_step_ = clock;
  combiner_.Reset(clock);
  stands_.Reset(clock);
  kept_.Clear();
  former_.clear();
  norm_.Clear();
  gate_.Clear();
  ages_.Reset();
  pulled_.Clear();
  lists_.clear();
  for (auto& [worker, progress] : progress_) {
    progress = PushWatermark(clock, job_.cluster.pushes_in_flight_max);
  }
}

bool RowService::MakeChange(PeerId from, const Frame& frame) {
  CHECK(shards_ != nullptr) << "a change before the first view";
  const auto former = std::ranges::find(former_, from, &std::pair<PeerId, WorkerId>::first);
  const auto worker = workers_.find(from);
  if (worker == workers_.end() && former == former_.end()) return false;
  Take({{from, frame.header.request_id},
        worker == workers_.end() ? former->second : worker->second,
        frame});
  return true;
}

}  // namespace hdps
