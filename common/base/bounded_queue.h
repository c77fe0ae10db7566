// A queue of bounded length that hands items from thread to thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/thread_annotations.h"

namespace hdps {

// Invariant: the queue holds at most `capacity` items. After Close() it takes no more, and Pop()
// still returns those that it holds. Any thread may call anything.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits for room. Returns false and drops the item if the queue is closed.
  bool Push(T item) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!closed_ && items_.size() >= capacity_) changed_.wait(mutex_);
    if (closed_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  // Waits for an item. Returns none once the queue is closed and empty.
  std::optional<T> Pop() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!closed_ && items_.empty()) changed_.wait(mutex_);
    return TakeFront();
  }

  // Returns an item if there is one now.
  std::optional<T> TryPop() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return TakeFront();
  }

  // Is true once the queue is closed and empty.
  bool at_end() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return closed_ && items_.empty();
  }

  void Close() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::optional<T> TakeFront() HDPS_REQUIRES(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  const size_t capacity_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<T> items_ HDPS_GUARDED_BY(mutex_);
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace hdps
