// What a member asks of the scheduler's store of keys and values, until it is answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/board_messages.h"

namespace hdps {

// Something to be said again and again.
class Repeat {
 public:
  // True when it is due, and then not again for `interval_ms`.
  bool Due(TimeMs now, int64_t interval_ms) {
    if (last_ && now - *last_ < interval_ms) return false;
    last_ = now;
    return true;
  }

 private:
  std::optional<TimeMs> last_;
};

// Invariant: of each key at most one put is under way, the newest.
class KvRequests {
 public:
  void Put(const KvPut& put) {
    std::erase_if(open_, [&put](const Open& open) { return open.is_put && open.key == put.key; });
    open_.push_back({true, put.key, put.value, ++last_id_, Repeat()});
  }
  void Get(const KvGet& get) { open_.push_back({false, get.key, "", ++last_id_, Repeat()}); }

  // Calls send(message, request id) with each that has not been said for `interval_ms`.
  template <typename Send>
  void SendDue(TimeMs now, int64_t interval_ms, const Send& send) {
    for (Open& open : open_) {
      if (!open.repeat.Due(now, interval_ms)) continue;
      if (open.is_put) {
        send(KvPut{open.key, open.value}, open.id);
      } else {
        send(KvGet{open.key}, open.id);
      }
    }
  }

  void On(KvValue& value, uint64_t request_id) {
    if (!value.found) return;
    bool wanted = false;
    std::erase_if(open_, [&](const Open& open) {
      if (open.key != value.key) return false;
      // The acknowledgement of an older put of this key is none of the newer one.
      if (open.is_put) return open.id == request_id;
      wanted = true;
      return true;
    });
    if (wanted) values_.push_back(std::move(value));
  }
  // Values that were asked for and have come.
  std::vector<KvValue> TakeValues() { return std::exchange(values_, {}); }

 private:
  struct Open {
    bool is_put = false;
    std::string key;
    std::string value;
    uint64_t id = 0;
    Repeat repeat;
  };
  std::vector<Open> open_;
  std::vector<KvValue> values_;
  uint64_t last_id_ = 0;
};

}  // namespace hdps
