// Where the ranks of a group find each other that are threads of one process.
#pragma once

#include <map>
#include <string>

#include "common/base/thread_annotations.h"
#include "worker/collective/collective.h"

namespace hdps {

class MeetingPlace : public RendezvousStore {
 public:
  Status Put(const std::string& key, const std::string& value) override {
    MutexLock lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
    return Status();
  }
  Result<std::string> Get(const std::string& key) override {
    MutexLock lock(mutex_);
    while (!values_.contains(key)) changed_.wait(mutex_);
    return values_[key];
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, std::string> values_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
