// The other ranks of a trainer: the group that sums with it, and how a wait for it ends.
#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "common/platform/failpoint.h"
#include "worker/role/trainer.h"

namespace hdps {

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
  MutexLock lock(group_mutex_);
  group_ = std::move(group);
  if (aborted_ || restarts_ > view.restarts) group_->Abort();
  return Status();
}

void Trainer::LeaveGroup() {
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
}

void Trainer::Abort() {
  MutexLock lock(group_mutex_);
  aborted_ = true;
  if (group_ != nullptr) group_->Abort();
}

}  // namespace hdps
