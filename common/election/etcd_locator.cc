// Reads the leader's key again and again.
#include "common/election/etcd_locator.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/outside_text.h"
#include "common/base/thread_annotations.h"
#include "common/net/address.h"
#include "common/platform/executor.h"
#include "common/platform/threads/pause.h"

namespace hdps {
namespace {

constexpr size_t kShownBytesMax = 80;

class EtcdLocator : public SchedulerLocator {
 public:
  EtcdLocator(std::unique_ptr<Etcd> etcd, std::string place, int64_t every_ms)
      : etcd_(std::move(etcd)),
        every_ms_(every_ms),
        newest_(Status(Code::kUnavailable, place + " has not answered yet")),
        place_(std::move(place)),
        thread_(StartThread("locator", [this] { Watch(); })) {}
  ~EtcdLocator() override { pause_.End(); }

  Result<std::string> Newest() override HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return newest_;
  }

 private:
  void Watch() HDPS_EXCLUDES(mutex_) {
    do {
      Result<std::string> leader = LeaderIn(*etcd_);
      if (!leader.ok()) {
        leader = Status(Code::kUnavailable, place_ + ": " + leader.status().message());
      }
      const MutexLock lock(mutex_);
      if (leader.ok() || !newest_.ok()) newest_ = std::move(leader);
    } while (pause_.For(every_ms_));
  }

  const std::unique_ptr<Etcd> etcd_;  // Of the thread.
  const int64_t every_ms_;
  Pause pause_;
  Mutex mutex_;
  Result<std::string> newest_ HDPS_GUARDED_BY(mutex_);
  const std::string place_;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace

Result<std::string> LeaderIn(Etcd& etcd) {
  HDPS_ASSIGN_OR_RETURN(const EtcdAnswer answer, etcd.Do(EtcdRequest()));
  if (!answer.leader) return Status(Code::kUnavailable, "no scheduler leads now");
  const Result<Address> address = ParseAddress(answer.leader->text);
  if (address.ok() && address->CanBeDialed()) return answer.leader->text;
  return Status(Code::kUnavailable, "\"" + EscapeUntrusted(answer.leader->text, kShownBytesMax) +
                                        "\" is no address of a scheduler");
}

std::unique_ptr<SchedulerLocator> NewEtcdLocator(std::unique_ptr<Etcd> etcd, std::string place,
                                                 int64_t every_ms) {
  return std::make_unique<EtcdLocator>(std::move(etcd), std::move(place), every_ms);
}

}  // namespace hdps
