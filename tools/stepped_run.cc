// Passes each step's report to the caller, and the caller's permission to go on to the workers.
#include "tools/stepped_run.h"

#include <glog/logging.h>

#include <string>
#include <utility>

namespace hdps {

SteppedRun::SteppedRun(LocalClusterOptions options, FileSystem& files, MonotonicClock& clock)
    : num_workers_(options.num_workers), done_(options.num_workers) {
  CHECK(options.after_step == nullptr && options.stop == nullptr) << "these are the run's own";
  for (uint32_t w = 0; w < num_workers_; ++w) {
    permits_.push_back(std::make_unique<BoundedQueue<bool>>(1));
  }
  options.stop = &stop_;
  options.after_step = [this](WorkerId worker, const StepReport& report) {
    if (done_.Push({worker, report})) permits_[worker.value]->Pop();
  };
  thread_ = StartThread("stepped_run", [this, options = std::move(options), &files, &clock] {
    end_ = RunLocalCluster(options, files, clock);
    done_.Close();
  });
}

SteppedRun::~SteppedRun() {
  stop_ = true;
  ReleaseWorkers();
}

void SteppedRun::ReleaseWorkers() {
  done_.Close();
  for (const auto& permits : permits_) permits->Close();
}

std::optional<std::vector<StepReport>> SteppedRun::Step() {
  if (std::exchange(begun_, true)) {
    for (const auto& permits : permits_) permits->Push(true);
  }
  std::vector<StepReport> reports(num_workers_);
  for (uint32_t w = 0; w < num_workers_; ++w) {
    const std::optional<Done> done = done_.Pop();
    if (!done.has_value()) return std::nullopt;
    reports[done->worker.value] = done->report;
  }
  last_ = reports;
  return reports;
}

Result<uint32_t> SteppedRun::rank(WorkerId worker) const {
  HDPS_RETURN_IF_ERROR(group_size().status());
  if (worker.value >= last_.size()) {
    return Status(Code::kInvalidArgument, "there is no worker " + std::to_string(worker.value) +
                                              "; this run has workers 0 to " +
                                              std::to_string(last_.size() - 1));
  }
  return last_[worker.value].rank;
}

Result<uint32_t> SteppedRun::group_size() const {
  if (last_.empty()) {
    return Status(Code::kInvalidArgument,
                  "the workers have no ranks yet: they form their group in the first Step()");
  }
  return last_.front().group_size;
}

Result<ProcessEnd> SteppedRun::Finish() {
  ReleaseWorkers();
  thread_->Join();
  return *end_;
}

}  // namespace hdps
