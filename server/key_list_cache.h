// Caches the key lists of one worker, so that its next requests can name a list instead of sending
// it.
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

// A checked list of keys: tables exist, and every key lies in the shard under which it is listed.
struct KeyList {
  std::vector<TableKeys> tables;
  Buffer keys;
  RequestPlan plan;
};

// Invariant: at most `lists_max` lists are kept, those with the highest numbers. A worker numbers
// its lists upwards and names only its last few, so only a late repeat can name a list that was
// dropped; the worker then sends the keys again.
//
// Used only from the loop of one ServerNode.
class KeyListCache {
 public:
  explicit KeyListCache(size_t lists_max) : lists_max_(lists_max) { CHECK_GT(lists_max, 0u); }

  void Remember(uint64_t number, std::shared_ptr<const KeyList> list) {
    lists_.insert_or_assign(number, std::move(list));
    if (lists_.size() > lists_max_) lists_.erase(lists_.begin());
    CHECK_LE(lists_.size(), lists_max_);
  }
  // Returns null if the list is not known.
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
