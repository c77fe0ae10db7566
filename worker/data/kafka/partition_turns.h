// Takes the messages of one worker's partitions by turns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/manifest_parts.h"
#include "worker/data/kafka/message_source.h"

namespace hdps {

struct TurnOptions {
  std::string topic;     // For messages.
  int64_t flush_ms = 0;  // A step ends so long after its begin; 0: it waits.
  std::function<void(const std::string& warning)> warn = {};  // May be empty.
  // Is called before each wait for a message, with the place of the last one in the partition whose
  // turn it is; may be empty.
  std::function<void(const std::string& behind)> await = {};
};

// A message, its partition as an index into offsets(), and that of the partition whose turn it was,
// which had none if it is another.
struct TurnMessage {
  size_t index = 0, turn = 0;
  TopicMessage message;
};

// Invariant: offsets()[i].next is the offset behind the last message that Next() has given of that
// partition, and offsets of a partition only grow.
//
// Without flush_ms the order of messages depends on nothing but the offsets at the begin and what
// BeginStep() was given; with it, where no ends are given, also on when messages arrive.
class PartitionTurns {
 public:
  // Requires: `source` and `clock` outlive it, the source has begun at `from`, and `from` is not
  // empty.
  PartitionTurns(MessageSource& source, MonotonicClock& clock, std::vector<PartitionOffset> from,
                 TurnOptions options);

  // Begins a step, whose first message is that of partition `turn` modulo their number. `ends`, if
  // not empty: for each of offsets(), the offset before which the step ends, however long it takes.
  void BeginStep(uint64_t turn, std::vector<int64_t> ends = {});
  // Returns the next message, for which it waits; nothing if the step's time is over, or its ends
  // are reached. A message is valid until the next call. kCorruption for an offset that is lower
  // than one before it, and for a message of the step that is gone. kCancelled after Stop() of the
  // source.
  Result<std::optional<TurnMessage>> Next();

  const std::vector<PartitionOffset>& offsets() const { return offsets_; }
  // Offsets that were passed over because no message has them, since construction.
  uint64_t missing() const { return missing_; }

 private:
  // Takes a message of the first partition, from the one whose turn it is on, that has one.
  Result<std::optional<TurnMessage>> TakeAny();
  // Is true if the step has all messages of the partition.
  bool HasEnded(size_t index) const {
    return !ends_.empty() && offsets_[index].next >= ends_[index];
  }
  bool StepHasEnded() const;  // Where ends are given.
  Status Advance(const TopicMessage& message, PartitionOffset* at);
  std::string PlaceOf(const PartitionOffset& at) const;
  void TellWait() const;

  MessageSource& source_;
  MonotonicClock& clock_;
  const TurnOptions options_;
  std::vector<PartitionOffset> offsets_;
  size_t turn_ = 0;  // Index of the partition whose turn it is.
  int64_t step_ends_ms_ = 0;
  std::vector<int64_t> ends_;  // Of the step; empty: none are given.
  uint64_t missing_ = 0;
};

}  // namespace hdps
