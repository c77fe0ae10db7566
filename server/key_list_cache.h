// The key lists of one worker that its next requests may name instead of carrying them.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/protocol/table_keys.h"
#include "server/request_plan.h"

namespace hdps {

// Keys that were checked: tables exist, every key lies in the shard it is listed under.
struct KeyList {
  std::vector<TableKeys> tables;
  Buffer keys;
  RequestPlan plan;
};

// Invariant: at most `lists_max` are kept, those with the highest numbers. A worker numbers its
// lists upwards and needs only its last few, so what is forgotten is not named any more, unless by
// a late repeat; then the worker sends the keys again.
//
// Belongs to one ServerNode and is used only from its loop.
class KeyListCache {
 public:
  explicit KeyListCache(size_t lists_max) : lists_max_(lists_max) { CHECK_GT(lists_max, 0u); }

  void Remember(uint64_t number, std::shared_ptr<const KeyList> list) {
    lists_.insert_or_assign(number, std::move(list));
    if (lists_.size() > lists_max_) lists_.erase(lists_.begin());
    CHECK_LE(lists_.size(), lists_max_);
  }
  // Null when it is not known.
  std::shared_ptr<const KeyList> Find(uint64_t number) const {
    const auto at = lists_.find(number);
    return at == lists_.end() ? nullptr : at->second;
  }
  size_t size() const { return lists_.size(); }

 private:
  const size_t lists_max_;
  std::map<uint64_t, std::shared_ptr<const KeyList>> lists_;
};

}  // namespace hdps
