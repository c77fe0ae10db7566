// A store in memory, for ranks that are threads of a test.
#include "tests/worker/collective/local_collectives.h"

#include <map>
#include <string>

#include "common/base/thread_annotations.h"

namespace hdps {
namespace {

class LocalStore : public RendezvousStore {
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

}  // namespace

std::unique_ptr<RendezvousStore> NewLocalStore() { return std::make_unique<LocalStore>(); }

}  // namespace hdps
