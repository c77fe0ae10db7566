// Locking rules the compiler can check (clang -Wthread-safety); no-ops under gcc.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HDPS_ATTR(x) __attribute__((x))
#else
#define HDPS_ATTR(x)
#endif
#define HDPS_GUARDED_BY(m) HDPS_ATTR(guarded_by(m))
#define HDPS_REQUIRES(m) HDPS_ATTR(requires_capability(m))
#define HDPS_EXCLUDES(m) HDPS_ATTR(locks_excluded(m))

namespace hdps {

class HDPS_ATTR(capability("mutex")) Mutex {
 public:
  void lock() HDPS_ATTR(acquire_capability()) { mutex_.lock(); }
  void unlock() HDPS_ATTR(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class HDPS_ATTR(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& m) HDPS_ATTR(acquire_capability(m)) : mutex_(m) { mutex_.lock(); }
  ~MutexLock() HDPS_ATTR(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits with the Mutex above. Always use it in a loop that checks the condition.
using ConditionVariable = std::condition_variable_any;

}  // namespace hdps
