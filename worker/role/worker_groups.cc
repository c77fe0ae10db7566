// Connects the workers of a view in groups; keeps, ends and counts them.
#include "worker/role/worker_groups.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/platform/failpoint.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

// Number of lanes that can wait for other workers at a time; each has a group with connections of
// its own.
constexpr uint32_t kLaneGroupsMax = 8;

std::vector<PeerId> MembersOf(const View& view) {
  std::vector<PeerId> members;
  for (const Member& worker : view.workers) members.push_back(worker.peer);
  return members;
}

}  // namespace

WorkerGroups::WorkerGroups(const Job& job, std::string host, RendezvousStore& store,
                           ActivityBoard& board)
    : job_(job), host_(std::move(host)), store_(store), board_(board) {}

CollectiveOptions WorkerGroups::OptionsOf(const View& view, uint32_t rank, int gpu) const {
  CollectiveOptions options;
  options.rank = rank;
  options.size = static_cast<uint32_t>(view.workers.size());
  options.host = host_;
  options.gpu = gpu;
  options.timeout_ms =
      1000 * (int64_t{job_.cluster.request_timeout_s} + MessagesAwaitedS(job_.data));
  options.by_library = job_.parallel.reduction == ReductionOrder::kLibrary;
  return options;
}

bool WorkerGroups::SumIsOf(const View& view) const {
  return sum_ != nullptr && MembersOf(view) == sum_members_;
}

Result<std::unique_ptr<Collective>> WorkerGroups::FormSum(const View& view, uint32_t rank,
                                                          int gpu) {
  CollectiveOptions options = OptionsOf(view, rank, gpu);
  options.watch = board_.calls();
  options.group = "allreduce/view_" + std::to_string(view.view.value);
  Result<std::unique_ptr<Collective>> met = std::unique_ptr<Collective>();
  {
    const ActivityBoard::Waiting waiting(&board_, WaitReason::kGroup);
    met = NewCollective(job_.parallel.collective, options, store_);
  }
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Collective> group, std::move(met));
  LOG(INFO) << "gradients are summed by " << group->name() << " over " << options.size
            << " workers, in " << (options.by_library ? "its own order" : "the workers' order");
  HDPS_FAILPOINT_OR_RETURN("worker.group.formed");
  return group;
}

void WorkerGroups::KeepSum(const View& view, std::unique_ptr<Collective> group) {
  LeaveSum();
  sum_members_ = MembersOf(view);
  MutexLock lock(mutex_);
  sum_ = std::move(group);
  sum_view_ = view.view;
  AbortOld();
}

void WorkerGroups::LeaveSum() {
  if (sum_ == nullptr) return;
  left_counts_.Add(sum_->counts());
  MutexLock lock(mutex_);
  sum_.reset();
}

bool WorkerGroups::LanesAreOf(const View& view) const {
  return !lanes_.empty() && MembersOf(view) == lane_members_;
}

Status WorkerGroups::FormLanes(const View& view, uint32_t rank, int gpu) {
  CollectiveOptions options = OptionsOf(view, rank, gpu);
  options.watch = board_.lane_calls();
  // Lanes exchange values in host memory. Groups of GPUs cannot be called in parallel.
  const bool on_host = gpu < 0;
  const uint32_t copies = on_host ? job_.parallel.interleave_num : 1;
  std::vector<std::unique_ptr<Collective>> groups;
  for (uint32_t i = 0; options.size > 1 && i < std::min(copies, kLaneGroupsMax); ++i) {
    options.group = "lanes/view_" + std::to_string(view.view.value) + "/" + std::to_string(i);
    const ActivityBoard::Waiting waiting(&board_, WaitReason::kGroup);
    HDPS_ASSIGN_OR_RETURN(
        groups.emplace_back(),
        NewCollective(on_host ? "gloo" : job_.parallel.collective, options, store_));
  }
  HDPS_FAILPOINT_OR_RETURN("worker.group.formed");
  lane_members_ = MembersOf(view);
  MutexLock lock(mutex_);
  lanes_ = std::move(groups);
  lanes_view_ = view.view;
  AbortOld();
  return Status();
}

std::vector<Collective*> WorkerGroups::lanes() const {
  std::vector<Collective*> lanes;
  for (const auto& lane : lanes_) lanes.push_back(lane.get());
  return lanes;
}

void WorkerGroups::LeaveLanes() {
  MutexLock lock(mutex_);
  lanes_.clear();
}

void WorkerGroups::Outdate() {
  sum_members_.clear();
  lane_members_.clear();
}

CollectiveCounts WorkerGroups::counts() const {
  CollectiveCounts counts = left_counts_;
  if (sum_ != nullptr) counts.Add(sum_->counts());
  for (const auto& lane : lanes_) counts.Add(lane->counts());
  return counts;
}

void WorkerGroups::Abort() {
  MutexLock lock(mutex_);
  aborted_ = true;
  AbortOld();
}

void WorkerGroups::Interrupt(ViewId view) {
  MutexLock lock(mutex_);
  interrupted_ = view;
  AbortOld();
}

void WorkerGroups::AbortOld() {
  if (sum_ != nullptr && (aborted_ || sum_view_ < interrupted_)) sum_->Abort();
  for (const auto& lane : lanes_) {
    if (aborted_ || lanes_view_ < interrupted_) lane->Abort();
  }
}

}  // namespace hdps
