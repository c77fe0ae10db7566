// Puts messages of a step in the order of their partitions' turns, whenever they came.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/kafka/partition_turns.h"

namespace hdps {

// A step's messages are in the order of the turns up to the first one that came while a partition
// before its own had none. This holds that one and all behind it, so that the order of the step's
// rows follows from which messages it has: a process that makes the step again asks servers for the
// same keys in the same order.
class LateMessages {
 public:
  bool empty() const { return num_ == 0; }
  // `partitions`: how many this worker has.
  void Add(const TurnMessage& message, size_t partitions) {
    if (num_++ == 0) turn_ = message.turn, held_.assign(partitions, {});
    held_[message.index].push_back({message, std::string(message.message.text)});
  }
  // Calls use(message) for each: one of each partition by turns, as long as it has some.
  template <typename Use>
  Status InTurns(const Use& use) {
    for (; num_ > 0; turn_ = (turn_ + 1) % held_.size()) {
      std::deque<Held>& of_turn = held_[turn_];
      if (of_turn.empty()) continue;
      Held held = std::move(of_turn.front());
      of_turn.pop_front();
      --num_;
      held.message.message.text = held.text;
      HDPS_RETURN_IF_ERROR(use(held.message));
    }
    return {};
  }

 private:
  struct Held {
    TurnMessage message;
    std::string text;  // A copy, because the source's is valid until it gives the next one.
  };
  std::vector<std::deque<Held>> held_;  // By partition.
  size_t num_ = 0, turn_ = 0;
};

}  // namespace hdps
