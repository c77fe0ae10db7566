// Ranks that are threads of one process: the receiver copies bytes from the sender's memory.
#include <glog/logging.h>

#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// State that the ranks share. Invariant: a message stays in its sender's memory until it is
// received.
struct Ways {
  explicit Ways(uint32_t ranks) : messages(ranks, std::vector<std::deque<RankMove>>(ranks)) {}

  Mutex mutex;
  ConditionVariable changed;
  std::vector<std::vector<std::deque<RankMove>>> messages HDPS_GUARDED_BY(mutex);  // [from][to]
  bool aborted HDPS_GUARDED_BY(mutex) = false;
};

class ThreadTransport : public HostTransport {
 public:
  ThreadTransport(std::shared_ptr<Ways> ways, uint32_t rank, uint32_t size)
      : HostTransport(rank, size), ways_(std::move(ways)) {}

  const char* name() const override { return "threads"; }

  Status Exchange(std::span<const RankMove> sends, std::span<const RankMove> receives) override {
    MutexLock lock(ways_->mutex);
    for (const RankMove& move : sends) {
      CHECK_NE(move.peer, rank());
      CHECK_GT(move.size, 0u);
      ways_->messages[rank()][move.peer].push_back(move);
    }
    ways_->changed.notify_all();
    for (const RankMove& move : receives) {
      std::deque<RankMove>& from = ways_->messages[move.peer][rank()];
      while (from.empty() && !ways_->aborted) ways_->changed.wait(ways_->mutex);
      if (ways_->aborted) return Cancelled();
      CHECK_EQ(from.front().size, move.size) << "ranks came with different lengths";
      std::memcpy(move.data, from.front().data, move.size);
      from.pop_front();
      ways_->changed.notify_all();
    }
    for (const RankMove& move : sends) {
      const std::deque<RankMove>& to = ways_->messages[rank()][move.peer];
      while (!to.empty() && !ways_->aborted) ways_->changed.wait(ways_->mutex);
    }
    return ways_->aborted ? Cancelled() : Status();
  }

  void Abort() override {
    MutexLock lock(ways_->mutex);
    ways_->aborted = true;
    ways_->changed.notify_all();
  }

 private:
  static Status Cancelled() { return Status(Code::kCancelled, "the group was given up"); }

  const std::shared_ptr<Ways> ways_;
};

class MemoryStore : public RendezvousStore {
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

std::unique_ptr<RendezvousStore> NewMemoryStore() { return std::make_unique<MemoryStore>(); }

std::vector<std::unique_ptr<Collective>> NewThreadCollectives(uint32_t size) {
  const auto ways = std::make_shared<Ways>(size);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (uint32_t r = 0; r < size; ++r) {
    ranks.push_back(NewCollectiveOver(std::make_shared<ThreadTransport>(ways, r, size)));
  }
  return ranks;
}

void OnAllRanks(uint32_t size, const std::function<void(uint32_t rank)>& body) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint32_t r = 0; r < size; ++r) {
    threads.push_back(StartThread("rank", [r, &body] { body(r); }));
  }
  for (const std::unique_ptr<Thread>& thread : threads) thread->Join();
}

}  // namespace hdps
