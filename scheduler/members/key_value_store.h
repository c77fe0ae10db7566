// A small store on the scheduler in which the ranks of a collective find each other.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "common/protocol/messages.h"

namespace hdps {

// Invariant: at most kEntriesMax entries; a value that was put stays until another is.
class KeyValueStore {
 public:
  static constexpr size_t kEntriesMax = 1u << 16;

  // False, and nothing is kept, when there is no room for another key.
  bool Put(const KvPut& put) {
    if (entries_.size() >= kEntriesMax && !entries_.contains(put.key)) return false;
    entries_[put.key] = put.value;
    return true;
  }
  KvValue Get(const std::string& key) const {
    const auto found = entries_.find(key);
    return {key, found != entries_.end(), found != entries_.end() ? found->second : ""};
  }
  const std::map<std::string, std::string>& entries() const { return entries_; }
  void Restore(std::map<std::string, std::string> entries) { entries_ = std::move(entries); }

 private:
  std::map<std::string, std::string> entries_;
};

}  // namespace hdps
