// A topic in memory, whose messages arrive as a test says.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/platform/settable_clock.h"
#include "worker/data/kafka/message_source.h"

namespace hdps {

// Each wait does the next thing of the script and takes no time; behind the last one a wait takes
// as long as it may, and one without limit ends as if the reader was stopped.
class ScriptedSource : public MessageSource {
 public:
  ScriptedSource(uint32_t partitions, SettableClock& clock)
      : partitions_(partitions), clock_(clock) {}

  // The next offset of the partition follows.
  void Add(uint32_t partition, const std::string& text) {
    auto& all = messages_[partition];
    all.emplace(all.empty() ? 0 : all.rbegin()->first + 1, text);
  }
  void AddAt(uint32_t partition, int64_t offset, const std::string& text) {
    messages_[partition][offset] = text;
  }
  void Then(std::function<void()> step) { script_.push_back(std::move(step)); }
  // The next message of the partition has this offset, whatever was asked for.
  void RewindTo(uint32_t partition, int64_t offset) { next_[partition] = offset; }

  Result<uint32_t> CountPartitions() override { return partitions_; }
  Result<int64_t> StartOf(uint32_t partition) override { return start[partition]; }
  Result<int64_t> FirstOf(uint32_t partition) override {
    const auto& all = messages_[partition];
    return all.empty() ? 0 : all.begin()->first;
  }
  Status Begin(std::span<const PartitionOffset> from) override {
    for (const PartitionOffset& at : from) next_[at.partition] = at.next;
    begun.assign(from.begin(), from.end());
    return {};
  }
  Result<std::optional<TopicMessage>> Take(uint32_t partition) override {
    const auto& all = messages_[partition];
    const auto found = all.lower_bound(next_.at(partition));
    if (found == all.end()) return std::optional<TopicMessage>();
    next_[partition] = found->first + 1;
    return std::optional<TopicMessage>({found->first, 0, found->second});
  }
  uint64_t Behind(const PartitionOffset& next) override {
    const auto& all = messages_[next.partition];
    return static_cast<uint64_t>(std::distance(all.lower_bound(next.next), all.end()));
  }
  bool Wait(int64_t ms) override {
    if (stopped_) return false;
    waits.push_back(ms);
    if (!script_.empty()) {
      const std::function<void()> step = std::move(script_.front());
      script_.pop_front();
      step();
      return !stopped_;
    }
    if (ms < 0) return false;
    clock_.now_ms += ms;
    return true;
  }
  void Stop() override { stopped_ = true; }

  std::map<uint32_t, int64_t> start;   // By partition; 0 for others.
  std::vector<PartitionOffset> begun;  // What Begin() was given.
  std::vector<int64_t> waits;

 private:
  const uint32_t partitions_;
  SettableClock& clock_;
  std::map<uint32_t, std::map<int64_t, std::string>> messages_;  // By partition and offset.
  std::map<uint32_t, int64_t> next_;
  std::deque<std::function<void()>> script_;
  bool stopped_ = false;
};

}  // namespace hdps
