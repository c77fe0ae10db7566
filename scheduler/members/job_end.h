// The end of a job: how it ends, and who is told.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_kind.h"

namespace hdps {

// Invariant: a job ends once, with one status and one reason. Nobody answers an Abort, and one copy
// may be lost: a job that is left says farewell kFarewells times, a tick apart, and is done then.
class JobEnd {
 public:
  static constexpr int kFarewells = 5;

  // The job is left with `exit_status`. False where it has ended before: nothing changes.
  bool Leave(int exit_status, std::string reason) {
    if (over()) return false;
    farewells_left_ = kFarewells;
    last_word_ = {exit_status, std::move(reason)};
    stage_ = Stage::kLeaving;
    return true;
  }
  // The job is finished, and its members know it by their last command.
  void Finish(std::string reason) {
    last_word_ = {0, std::move(reason)};
    stage_ = Stage::kFinished;
  }
  // Somebody asks for the job to stop. False where that was asked before, or it has ended.
  bool TakeStop() { return !over() && !std::exchange(stop_asked_, true); }
  bool stop_asked() const { return stop_asked_; }

  // What everyone is told now. Requires: leaving().
  Abort TakeFarewell() {
    --farewells_left_;
    return last_word_;
  }
  // What the sender of a frame of `kind` is answered after the end, for it has missed that; none:
  // nothing. Who never got a place has not been told to end with the members.
  std::optional<Abort> AnswerTo(MessageKind kind) const {
    const bool asks = kind == MessageKind::kJoinRequest ||
                      (kind == MessageKind::kHeartbeat && stage_ == Stage::kLeaving);
    return over() && asks ? std::optional(last_word_) : std::nullopt;
  }

  bool over() const { return stage_ != Stage::kGoesOn; }
  bool leaving() const { return stage_ == Stage::kLeaving; }
  bool done() const { return stage_ == Stage::kFinished || (leaving() && farewells_left_ <= 0); }
  const Abort& last_word() const { return last_word_; }

 private:
  enum class Stage { kGoesOn, kLeaving, kFinished };
  Stage stage_ = Stage::kGoesOn;
  Abort last_word_ = {0, ""};
  int farewells_left_ = 0;
  bool stop_asked_ = false;
};

}  // namespace hdps
