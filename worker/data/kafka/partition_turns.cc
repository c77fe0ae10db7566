// Asks the partitions in turn, and waits when none has a message.
#include "worker/data/kafka/partition_turns.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {

PartitionTurns::PartitionTurns(MessageSource& source, MonotonicClock& clock,
                               std::vector<PartitionOffset> from, TurnOptions options)
    : source_(source), clock_(clock), options_(std::move(options)), offsets_(std::move(from)) {
  CHECK(!offsets_.empty());
}

void PartitionTurns::BeginStep(uint64_t turn, std::vector<int64_t> ends) {
  CHECK(ends.empty() || ends.size() == offsets_.size());
  ends_ = std::move(ends);
  turn_ = static_cast<size_t>(turn % offsets_.size());
  step_ends_ms_ = clock_.NowMs() + options_.flush_ms;
}

Result<std::optional<TurnMessage>> PartitionTurns::Next() {
  while (true) {
    if (StepHasEnded()) return std::optional<TurnMessage>();
    HDPS_ASSIGN_OR_RETURN(std::optional<TurnMessage> taken, TakeAny());
    if (taken) return taken;
    int64_t wait_ms = -1;
    if (options_.flush_ms > 0 && ends_.empty()) {
      wait_ms = step_ends_ms_ - clock_.NowMs();
      if (wait_ms <= 0) return std::optional<TurnMessage>();
    }
    TellWait();
    if (!source_.Wait(wait_ms)) return Status(Code::kCancelled, "the reader was stopped");
  }
}

Result<std::optional<TurnMessage>> PartitionTurns::TakeAny() {
  // Without a flush no partition is passed over but those whose messages the step has.
  const bool any = options_.flush_ms > 0 && ends_.empty();
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const size_t index = (turn_ + i) % offsets_.size();
    if (HasEnded(index)) continue;
    HDPS_ASSIGN_OR_RETURN(const std::optional<TopicMessage> message,
                          source_.Take(offsets_[index].partition));
    if (!message && any) continue;
    if (!message) break;
    HDPS_RETURN_IF_ERROR(Advance(*message, &offsets_[index]));
    const size_t turn = std::exchange(turn_, (index + 1) % offsets_.size());
    return std::optional<TurnMessage>({index, turn, *message});
  }
  return std::optional<TurnMessage>();
}

bool PartitionTurns::StepHasEnded() const {
  const auto has_all = [](const PartitionOffset& at, int64_t end) { return at.next >= end; };
  return !ends_.empty() && std::ranges::equal(offsets_, ends_, has_all);
}

std::string PartitionTurns::PlaceOf(const PartitionOffset& at) const {
  return options_.topic + ", partition " + std::to_string(at.partition) + ": ";
}

void PartitionTurns::TellWait() const {
  if (!options_.await) return;
  const PartitionOffset& at = offsets_[turn_];
  const std::string partition = options_.topic + "/" + std::to_string(at.partition);
  options_.await(at.next == 0 ? "the begin of " + partition
                              : partition + ":" + std::to_string(at.next - 1));
}

Status PartitionTurns::Advance(const TopicMessage& message, PartitionOffset* at) {
  if (message.offset < at->next) {
    return {Code::kCorruption,
            PlaceOf(*at) + "offset " + std::to_string(message.offset) + " came where " +
                std::to_string(at->next) +
                " was expected, and offsets only grow: the topic was made anew, so what the job "
                "has read of it says nothing about where to go on; begin a job with another --out, "
                "from this one's rows with --init"};
  }
  if (message.offset > at->next) {
    const auto gap = static_cast<uint64_t>(message.offset - at->next);
    if (missing_ == 0 && options_.warn) {
      options_.warn(PlaceOf(*at) + "no message has the offsets from " + std::to_string(at->next) +
                    " to " + std::to_string(message.offset - 1) +
                    ": the broker has deleted them, or they were never given; all further ones "
                    "are counted in hdps_worker_messages_missing_total");
    }
    missing_ += gap;
  }
  const auto index = static_cast<size_t>(at - offsets_.data());
  if (!ends_.empty() && message.offset >= ends_[index]) {
    return {Code::kCorruption, PlaceOf(*at) + "offset " + std::to_string(message.offset) +
                                   " came where a step that was pushed has messages before " +
                                   std::to_string(ends_[index]) +
                                   ": the broker has deleted them since"};
  }
  at->next = message.offset + 1;
  return {};
}

}  // namespace hdps
