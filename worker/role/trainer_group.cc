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
    runner_->set_meeting({});  // It lets go of the groups that were.
    CollectiveOptions options;
    options.rank = channel_.rank().value;
    options.size = static_cast<uint32_t>(members.size());
    options.host = collective_host_;
    options.timeout_ms = int64_t{job_->cluster.request_timeout_s} * 1000;
    // What lanes exchange lies on the host. Groups of GPUs are not to be called side by side.
    const bool on_host = model_->ops().on_host();
    const uint32_t copies = on_host ? job_->parallel.interleave_num : 1;
    std::vector<std::unique_ptr<Collective>> groups;
    for (uint32_t i = 0; members.size() > 1 && i < std::min(copies, kLaneGroupsMax); ++i) {
      options.group = "lanes/view_" + std::to_string(view.view.value) + "/" + std::to_string(i);
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
  CollectiveOptions options;
  options.rank = channel_.rank().value;
  options.size = static_cast<uint32_t>(members.size());
  options.group = "allreduce/view_" + std::to_string(view.view.value);
  options.host = collective_host_;
  options.timeout_ms = int64_t{job_->cluster.request_timeout_s} * 1000;
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Collective> group,
                        NewCollective(job_->parallel.collective, options, channel_));
  LOG(INFO) << "gradients are summed by " << group->name() << " over " << options.size
            << " workers";
  HDPS_FAILPOINT_OR_RETURN("worker.group.formed");
  LeaveGroup();
  group_members_ = std::move(members);
  if (allreduce() && runner_->dense_plan().buckets.size() > 1) {
    collective_queue_ = std::make_unique<CollectiveQueue>(*group, time_);
  }
  if (rank_model_ != nullptr) {
    HDPS_ASSIGN_OR_RETURN(rank_groups_, RankGroups::Form(rank_model_->graph(), *group));
  }
  MutexLock lock(group_mutex_);
  group_ = std::move(group);
  if (aborted_ || restarts_ > view.restarts) group_->Abort();
  return Status();
}

void Trainer::LeaveGroup() {
  rank_groups_.reset();
  collective_queue_.reset();
  if (group_ == nullptr) return;
  all_counts_.Add(group_->counts());
  MutexLock lock(group_mutex_);
  group_.reset();
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
