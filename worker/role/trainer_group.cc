// The other ranks of a trainer: the group that sums with it, and how a wait for it ends.
#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/failpoint.h"
#include "worker/role/trainer.h"

namespace hdps {
namespace {

// Lanes that can wait for other workers at the same time; each is a group with ways of its own.
constexpr uint32_t kLaneGroupsMax = 8;

}  // namespace

Status Trainer::MeetInLanes() {
  const View& view = *channel_.view();
  std::vector<PeerId> members;
  for (const Member& worker : view.workers) members.push_back(worker.peer);
  if (lane_groups_.empty() || members != lane_members_) {
    board_.Enter("meet");
    runner_->set_meeting({});  // It lets go of the groups that were.
    CollectiveOptions options;
    options.rank = channel_.rank().value;
    options.size = static_cast<uint32_t>(members.size());
    options.host = collective_host_;
    options.gpu = model_->ops().gpu();
    options.timeout_ms = int64_t{job_->cluster.request_timeout_s} * 1000;
    options.watch = board_.lane_calls();
    // What lanes exchange lies on the host. Groups of GPUs are not to be called side by side.
    const bool on_host = model_->ops().on_host();
    const uint32_t copies = on_host ? job_->parallel.interleave_num : 1;
    std::vector<std::unique_ptr<Collective>> groups;
    for (uint32_t i = 0; members.size() > 1 && i < std::min(copies, kLaneGroupsMax); ++i) {
      options.group = "lanes/view_" + std::to_string(view.view.value) + "/" + std::to_string(i);
      const ActivityBoard::Waiting waiting(&board_, Hold::kGroup);
      HDPS_ASSIGN_OR_RETURN(
          groups.emplace_back(),
          NewCollective(on_host ? "gloo" : job_->parallel.collective, options, channel_));
    }
    HDPS_FAILPOINT_OR_RETURN("worker.group.formed");
    lane_members_ = std::move(members);
    MutexLock lock(group_mutex_);
    lane_groups_ = std::move(groups);
    for (const auto& group : lane_groups_) {
      if (aborted_ || restarts_ > view.restarts) group->Abort();
    }
  }
  std::vector<Collective*> groups;
  for (const auto& group : lane_groups_) groups.push_back(group.get());
  runner_->set_meeting(groups);
  return Status();
}

Status Trainer::EnsureGroup() {
  const View& view = *channel_.view();
  std::vector<PeerId> members;
  for (const Member& worker : view.workers) members.push_back(worker.peer);
  if (group_ != nullptr && members == group_members_) return Status();
  board_.Enter("meet");
  CollectiveOptions options;
  options.rank = channel_.rank().value;
  options.size = static_cast<uint32_t>(members.size());
  options.watch = board_.calls();
  options.group = "allreduce/view_" + std::to_string(view.view.value);
  options.host = collective_host_;
  options.gpu = model_->ops().gpu();
  options.timeout_ms = int64_t{job_->cluster.request_timeout_s} * 1000;
  Result<std::unique_ptr<Collective>> met = std::unique_ptr<Collective>();
  {
    const ActivityBoard::Waiting waiting(&board_, Hold::kGroup);
    met = NewCollective(job_->parallel.collective, options, channel_);
  }
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Collective> group, std::move(met));
  LOG(INFO) << "gradients are summed by " << group->name() << " over " << options.size
            << " workers";
  HDPS_FAILPOINT_OR_RETURN("worker.group.formed");
  LeaveGroup();
  group_members_ = std::move(members);
  if (allreduce()) HDPS_RETURN_IF_ERROR(PrepareDenseGroup(*group));
  MutexLock lock(group_mutex_);
  group_ = std::move(group);
  if (aborted_ || restarts_ > view.restarts) group_->Abort();
  return Status();
}

const DenseShards& Trainer::ShardsOfView() {
  const auto size = static_cast<uint32_t>(channel_.view()->workers.size());
  const uint32_t rank = channel_.rank().value;
  const bool cut = shards_ != nullptr && rank_model_ != nullptr;
  if (!cut && (shards_ == nullptr || shards_->rank() != rank || shards_->size() != size)) {
    // What a strategy cuts has no optimizer that is split as well.
    shards_ = rank_model_ == nullptr
                  ? std::make_unique<DenseShards>(*job_, model_->tensors(), rank, size)
                  : std::make_unique<DenseShards>(own_model().tensors());
  }
  return *shards_;
}

Status Trainer::PrepareDenseGroup(Collective& group) {
  const DenseShards& shards = ShardsOfView();
  const DensePlan plan =
      PlanDense(own_job(), own_model().tensors(), shards,
                rank_model_ == nullptr ? std::vector<uint32_t>() : rank_model_->SharedBy());
  HDPS_RETURN_IF_ERROR(CompareStrategies(group));
  const uint64_t mine = plan.Fingerprint() ^ (job_->parallel.gradient_fp32_sync ? 0 : 1);
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<uint64_t>> all,
                        GatherLists<uint64_t>(group, {&mine, 1}));
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].front() == mine) continue;
    return Status(Code::kInvalidArgument,
                  "parallel.comm_fusion: worker " + std::to_string(r) +
                      " puts dense tensors together in another way than worker " +
                      std::to_string(group.rank()) +
                      "; give all workers the same parallel section and layers");
  }
  if (rank_model_ != nullptr) {
    HDPS_ASSIGN_OR_RETURN(rank_groups_, RankGroups::Form(rank_model_->graph(), group));
  }
  if (shards.any() && shards.places() < shards.size()) {
    HDPS_ASSIGN_OR_RETURN(places_, group.Split(shards.group()));
    HDPS_ASSIGN_OR_RETURN(replicas_, group.Split(shards.place()));
  }
  if (shards.any()) {
    LOG(INFO) << "the optimizer of " << shards.OwnKeys().size() << " of " << dense_keys_.size()
              << " chunks of dense tensors is kept here, shared with " << shards.places() - 1
              << " workers";
  }
  if (plan.buckets.size() > 1 && group.size() > 1) {
    collective_queue_ = std::make_unique<CollectiveQueue>(group, time_);
  }
  LOG(INFO) << "dense gradients travel in " << plan.buckets.size() << " buckets";
  return Status();
}

void Trainer::LeaveGroup() {
  rank_groups_.reset();
  collective_queue_.reset();
  places_.reset();
  replicas_.reset();
  if (group_ == nullptr) return;
  all_counts_.Add(group_->counts());
  MutexLock lock(group_mutex_);
  group_.reset();
}

CollectiveTally Trainer::TellCollectives() const {
  CollectiveCounts counts = all_counts_;
  if (group_ != nullptr) counts.Add(group_->counts());
  for (const auto& group : lane_groups_) counts.Add(group->counts());
  CollectiveTally tally;
  const auto take = [&counts](CollectiveKind kind, uint64_t* calls, uint64_t* bytes) {
    *calls = counts.of(kind).calls;
    *bytes = counts.of(kind).bytes;
  };
  take(CollectiveKind::kAllReduce, &tally.allreduce_calls, &tally.allreduce_bytes);
  take(CollectiveKind::kReduceScatter, &tally.reduce_scatter_calls, &tally.reduce_scatter_bytes);
  take(CollectiveKind::kAllGather, &tally.allgather_calls, &tally.allgather_bytes);
  if (dense_state_ != nullptr) tally.state_bytes = dense_state_->state_bytes();
  if (group_ != nullptr) {
    LOG(INFO) << "collectives: " << counts.Describe() << "; optimizer state kept here "
              << tally.state_bytes << " bytes";
  }
  return tally;
}

Status Trainer::JoinCache() {
  const View& view = *channel_.view();
  const bool alone = view.workers.size() == 1;
  if (!alone) HDPS_RETURN_IF_ERROR(EnsureGroup());
  return cache_->Join(view.view, channel_.rank().value, alone ? nullptr : group_.get());
}

void Trainer::Interrupt(uint32_t restarts) {
  MutexLock lock(group_mutex_);
  restarts_ = restarts;
  if (group_ != nullptr) group_->Abort();
  for (const auto& group : lane_groups_) group->Abort();
}

void Trainer::Abort() {
  MutexLock lock(group_mutex_);
  aborted_ = true;
  if (group_ != nullptr) group_->Abort();
  for (const auto& group : lane_groups_) group->Abort();
}

}  // namespace hdps
