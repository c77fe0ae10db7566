// Runs the loop of the queue's thread.
#include "worker/collective/collective_queue.h"

#include <utility>

#include "kernels/device_memory_full.h"

namespace hdps {

CollectiveQueue::CollectiveQueue(Collective& group, MonotonicClock& clock)
    : group_(group), clock_(clock), thread_(StartThread("collective", [this] { MakeCalls(); })) {}

CollectiveQueue::~CollectiveQueue() {
  bool in_call = false;
  {
    MutexLock lock(mutex_);
    ends_ = true;
    calls_.clear();
    in_call = in_call_;
    changed_.notify_all();
  }
  if (in_call) group_.Abort();
  thread_->Join();
}

CollectiveTicket CollectiveQueue::Submit(Call call) {
  MutexLock lock(mutex_);
  calls_.push_back(std::move(call));
  changed_.notify_all();
  return {++submitted_};
}

Status CollectiveQueue::Wait(CollectiveTicket ticket) {
  MutexLock lock(mutex_);
  while (done_ < ticket.number) changed_.wait(mutex_);
  return failure_;
}

int64_t CollectiveQueue::TakeBusyNs() {
  MutexLock lock(mutex_);
  return std::exchange(busy_ns_, 0);
}

void CollectiveQueue::MakeCalls() {
  while (true) {
    Call call;
    bool broken = false;
    {
      MutexLock lock(mutex_);
      while (calls_.empty() && !ends_) changed_.wait(mutex_);
      if (ends_) return;
      call = std::move(calls_.front());
      calls_.pop_front();
      broken = !failure_.ok();
      in_call_ = !broken;
    }
    const int64_t begin = clock_.NowNs();
    Status status = broken ? Status() : WithinDeviceMemory([&] { return call(group_); });
    const int64_t end = clock_.NowNs();
    MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    in_call_ = false;
    busy_ns_ += end - begin;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace hdps
