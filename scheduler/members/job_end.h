// The end of a job: its status and reason, and who is told.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_kind.h"

namespace hdps {

// Invariant: a job ends once, with one status and one reason. An Abort is not acknowledged and may
// be lost, so a job that is left sends it kAbortRepeats times, one tick apart, and is done then. A
// process that steps down ends alone and says nothing: its members wait for the next one.
class JobEnd {
 public:
  static constexpr int kAbortRepeats = 5;

  // Ends the job with `exit_status` and a reason. Returns false, and changes nothing, if it has
  // ended before.
  bool Leave(int exit_status, std::string reason) {
    if (over()) return false;
    aborts_left_ = kAbortRepeats;
    last_word_ = {exit_status, std::move(reason)};
    stage_ = Stage::kLeaving;
    return true;
  }
  // Ends a finished job, whose members know it by their last command.
  void Finish(std::string reason) {
    last_word_ = {0, std::move(reason)};
    stage_ = Stage::kFinished;
  }
  // Ends this process and not the job, with status 3.
  void StepDown(std::string reason) {
    last_word_ = {3, std::move(reason)};
    stage_ = Stage::kSteppedDown;
  }
  // Notes a request to stop. Returns false if there was one before, or if the job has ended.
  bool TakeStop() { return !over() && !std::exchange(stop_asked_, true); }
  bool stop_asked() const { return stop_asked_; }

  // Returns the Abort to send to all members now. Requires: leaving().
  Abort TakeAbort() {
    --aborts_left_;
    return last_word_;
  }
  // Returns the reply to a frame of `kind` that arrives after the end; none if it gets no reply.
  // Join requests are answered, because a process without a place was not told with the members,
  // and requests to leave, because they come from members that missed it.
  std::optional<Abort> AnswerTo(MessageKind kind) const {
    if (stepped_down()) return std::nullopt;
    const bool asks = kind == MessageKind::kJoinRequest || kind == MessageKind::kLeaveRequest ||
                      (kind == MessageKind::kHeartbeat && stage_ == Stage::kLeaving);
    return over() && asks ? std::optional(last_word_) : std::nullopt;
  }

  bool over() const { return stage_ != Stage::kGoesOn; }
  bool leaving() const { return stage_ == Stage::kLeaving; }
  bool stepped_down() const { return stage_ == Stage::kSteppedDown; }
  bool done() const {
    return stepped_down() || stage_ == Stage::kFinished || (leaving() && aborts_left_ <= 0);
  }
  const Abort& last_word() const { return last_word_; }

 private:
  enum class Stage { kGoesOn, kLeaving, kFinished, kSteppedDown };
  Stage stage_ = Stage::kGoesOn;
  Abort last_word_ = {0, ""};
  int aborts_left_ = 0;
  bool stop_asked_ = false;
};

}  // namespace hdps
