// A collective over shared memory, for ranks that are threads: every rank reads all the others.
#include <glog/logging.h>

#include <map>
#include <utility>

#include "common/base/thread_annotations.h"
#include "worker/exchange/collective.h"

namespace hdps {
namespace {

// Invariant: between two turns of the gate every rank's `data` stands still.
struct Meeting {
  explicit Meeting(uint32_t ranks) : size(ranks), data(ranks) {}

  // Returns when all ranks have come. False after Abort().
  bool Meet() HDPS_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    const uint64_t mine = turn;
    if (++waiting == size) {
      waiting = 0;
      ++turn;
      changed.notify_all();
    }
    while (turn == mine && !aborted) changed.wait(mutex);
    return turn != mine;
  }

  void Abort() HDPS_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    aborted = true;
    changed.notify_all();
  }

  const uint32_t size;
  std::vector<std::span<float>> data;  // [ranks]; each is written by its rank before it meets.
  Mutex mutex;
  ConditionVariable changed;
  uint32_t waiting HDPS_GUARDED_BY(mutex) = 0;
  uint64_t turn HDPS_GUARDED_BY(mutex) = 0;
  bool aborted HDPS_GUARDED_BY(mutex) = false;
};

class LocalCollective : public Collective {
 public:
  LocalCollective(std::shared_ptr<Meeting> meeting, uint32_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return meeting_->size; }
  const char* name() const override { return "local"; }

  Status AllReduceSum(std::span<float> data) override {
    meeting_->data[rank_] = data;
    if (!meeting_->Meet()) return Aborted();
    CHECK_EQ(meeting_->data[0].size(), data.size()) << "ranks came with different lengths";
    sum_.assign(meeting_->data[0].begin(), meeting_->data[0].end());
    for (uint32_t r = 1; r < size(); ++r) {
      const std::span<const float> other = meeting_->data[r];
      for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += other[i];
    }
    if (!meeting_->Meet()) return Aborted();
    std::copy(sum_.begin(), sum_.end(), data.begin());
    return Status();
  }

  Status Barrier() override { return meeting_->Meet() ? Status() : Aborted(); }
  void Abort() override { meeting_->Abort(); }

 private:
  static Status Aborted() { return Status(Code::kCancelled, "the group was given up"); }

  const std::shared_ptr<Meeting> meeting_;
  const uint32_t rank_;
  std::vector<float> sum_;
};

class LocalBoard : public Board {
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

std::vector<std::unique_ptr<Collective>> NewLocalCollectives(uint32_t size) {
  auto meeting = std::make_shared<Meeting>(size);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (uint32_t r = 0; r < size; ++r)
    ranks.push_back(std::make_unique<LocalCollective>(meeting, r));
  return ranks;
}

std::unique_ptr<Board> NewLocalStore() { return std::make_unique<LocalBoard>(); }

}  // namespace hdps
