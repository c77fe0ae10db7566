// A small key-value store on the scheduler, by which the ranks of a collective find each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/byte_count.h"
#include "common/net/node.h"
#include "common/protocol/board_messages.h"

namespace hdps {

// Invariant: at most kEntriesMax entries and kBytesMax bytes of keys and values; a value stays
// until another is put under its key, or the board is cleared. Each kept Put() is answered by one
// TakeAnswers(), which is called when the entry has been written, so that a successor of this
// scheduler process would know it.
class KeyValueStore {
 public:
  static constexpr size_t kEntriesMax = 1u << 16, kBytesMax = size_t{4} << 20;

  // Describes what a member did whose Put() found no room.
  static std::string TooMuch() {
    return "it has put more on the board than that holds (" + std::to_string(kEntriesMax) +
           " entries, " + ShowByteCount(kBytesMax) + ")";
  }

  // Returns false, and keeps nothing, if there is no room.
  bool Put(PeerId from, const KvPut& put, uint64_t request_id) {
    const auto found = entries_.find(put.key);
    const size_t old = found == entries_.end() ? 0 : put.key.size() + found->second.size();
    const size_t bytes = bytes_ - old + put.key.size() + put.value.size();
    if (bytes > kBytesMax || (found == entries_.end() && entries_.size() >= kEntriesMax))
      return false;
    bytes_ = bytes;
    entries_[put.key] = put.value;
    unanswered_.push_back({from, put.key, request_id});
    return true;
  }
  struct Answer {
    PeerId to;
    uint64_t request_id = 0;
    KvValue value;
  };
  std::vector<Answer> TakeAnswers() {
    std::vector<Answer> answers;
    for (const Unanswered& one : std::exchange(unanswered_, {})) {
      answers.push_back({one.to, one.request_id, Get(one.key)});
    }
    return answers;
  }
  KvValue Get(const std::string& key) const {
    const auto found = entries_.find(key);
    return {key, found != entries_.end(), found != entries_.end() ? found->second : ""};
  }
  // Forgets everything, also puts that were not answered: their senders repeat them.
  void Clear() {
    entries_.clear();
    unanswered_.clear();
    bytes_ = 0;
  }
  const std::map<std::string, std::string>& entries() const { return entries_; }
  void Restore(std::map<std::string, std::string> entries) {
    entries_ = std::move(entries);
    bytes_ = 0;
    for (const auto& [key, value] : entries_) bytes_ += key.size() + value.size();
  }

 private:
  struct Unanswered {
    PeerId to;
    std::string key;
    uint64_t request_id = 0;
  };
  std::map<std::string, std::string> entries_;
  size_t bytes_ = 0;
  std::vector<Unanswered> unanswered_;  // Puts in their order.
};

}  // namespace hdps
