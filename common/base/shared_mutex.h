// A lock that many readers hold at once, or one writer alone.
#pragma once

#include <shared_mutex>

#include "common/base/thread_annotations.h"

namespace hdps {

// Invariant: a writer waits for the readers that hold the lock when it comes, and for none that
// come later: these wait for it. So readers that follow each other without a gap cannot keep a
// writer out, as they can with std::shared_mutex.
class HDPS_ATTR(capability("shared mutex")) SharedMutex {
 public:
  void lock() HDPS_ATTR(acquire_capability()) {
    gate_.lock();
    mutex_.lock();
  }
  void unlock() HDPS_ATTR(release_capability()) {
    mutex_.unlock();
    gate_.unlock();
  }
  void lock_shared() HDPS_ATTR(acquire_shared_capability()) {
    gate_.lock();
    mutex_.lock_shared();
    gate_.unlock();
  }
  void unlock_shared() HDPS_ATTR(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::mutex gate_;  // A writer holds it, a reader only passes through.
  std::shared_mutex mutex_;
};

class HDPS_ATTR(scoped_lockable) ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& m) HDPS_ATTR(acquire_shared_capability(m)) : mutex_(m) {
    mutex_.lock_shared();
  }
  ~ReaderLock() HDPS_ATTR(release_capability()) { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class HDPS_ATTR(scoped_lockable) WriterLock {
 public:
  explicit WriterLock(SharedMutex& m) HDPS_ATTR(acquire_capability(m)) : mutex_(m) {
    mutex_.lock();
  }
  ~WriterLock() HDPS_ATTR(release_capability()) { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace hdps
