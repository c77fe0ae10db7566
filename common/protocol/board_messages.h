// Messages to the key-value store of the scheduler, through which the ranks of a collective find
// each other, and a member's requests to it, repeated until they are answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/message_kind.h"

namespace hdps {

// Stores a value on the scheduler; the ranks of a collective find each other through these.
struct KvPut {
  static constexpr MessageKind kKind = MessageKind::kKvPut;
  std::string key;
  std::string value;
};
struct KvGet {
  static constexpr MessageKind kKind = MessageKind::kKvGet;
  std::string key;
};
struct KvValue {  // Answers both requests.
  static constexpr MessageKind kKind = MessageKind::kKvValue;
  std::string key;
  bool found = false;
  std::string value;
};

// A timer for something that is sent repeatedly.
class Repeat {
 public:
  // Returns true if it is due, and then not again for `interval_ms`.
  bool Due(TimeMs now, int64_t interval_ms) {
    if (last_ && now - *last_ < interval_ms) return false;
    last_ = now;
    return true;
  }

 private:
  std::optional<TimeMs> last_;
};

// Invariant: at most one put of each key is in progress, the newest.
class KvRequests {
 public:
  void Put(const KvPut& put) {
    std::erase_if(open_, [&put](const Open& open) { return open.is_put && open.key == put.key; });
    open_.push_back({true, put.key, put.value, ++last_id_, Repeat()});
  }
  void Get(const KvGet& get) { open_.push_back({false, get.key, "", ++last_id_, Repeat()}); }

  // Gives up all requests that have no answer yet.
  void Clear() { open_.clear(); }

  // Calls send(message, request id) for each request that was not sent for `interval_ms`.
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
      // The acknowledgment of an older put does not acknowledge a newer one.
      if (open.is_put) return open.id == request_id;
      wanted = true;
      return true;
    });
    if (wanted) values_.push_back(std::move(value));
  }
  // Returns the values that have arrived for gets.
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
