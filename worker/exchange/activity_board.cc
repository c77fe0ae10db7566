// Keeps the activity of a worker's compute side under one mutex.
#include "worker/exchange/activity_board.h"

#include <string_view>

namespace hdps {

void ActivityBoard::Enter(const char* stage, const std::string& subject) {
  const int64_t now_ms = clock_.NowMs();
  MutexLock lock(mutex_);
  stage_ = stage;
  subject_ = subject;
  stage_since_ms_ = now_ms;
}

void ActivityBoard::Opened(const std::string& path) {
  MutexLock lock(mutex_);
  opened_ = path;
}

int64_t ActivityBoard::AwaitRows(const std::string& behind) {
  const int64_t now_ms = clock_.NowMs();
  MutexLock lock(mutex_);
  if (rows_behind_ != behind) rows_since_ms_ = now_ms;
  rows_behind_ = behind;
  return now_ms - rows_since_ms_;
}

void ActivityBoard::SetTrouble(const std::string& trouble) {
  MutexLock lock(mutex_);
  trouble_ = trouble;
}

std::string ActivityBoard::trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

ActivityBoard::Waiting::Waiting(ActivityBoard* board, WaitReason reason) : board_(board) {
  if (board_ == nullptr) return;
  const int64_t now_ms = board_->clock_.NowMs();
  MutexLock lock(board_->mutex_);
  before_ = board_->reason_;
  before_since_ms_ = board_->reason_since_ms_;
  if (before_ == reason) return;
  board_->reason_ = reason;
  board_->reason_since_ms_ = now_ms;
}

ActivityBoard::Waiting::~Waiting() {
  if (board_ == nullptr) return;
  MutexLock lock(board_->mutex_);
  board_->reason_ = before_;
  board_->reason_since_ms_ = before_since_ms_;
}

void ActivityBoard::Calls::CallBegun() {
  const int64_t now_ms = board_.clock_.NowMs();
  MutexLock lock(board_.mutex_);
  ++calls_->count;
  calls_->since_ms = now_ms;
}

void ActivityBoard::Calls::CallEnded() {
  MutexLock lock(board_.mutex_);
  --calls_->count;
}

Activity ActivityBoard::Now() const {
  const int64_t now_ms = clock_.NowMs();
  MutexLock lock(mutex_);
  Activity activity;
  activity.stage = stage_;
  activity.subject = subject_;
  activity.wait_reason = reason_;
  int64_t since_ms = reason_since_ms_;
  const bool computes = std::string_view(stage_) == kCompute;
  const InCalls& in_calls = computes ? in_lane_calls_ : in_calls_;
  if (reason_ == WaitReason::kNone) {
    const bool calls = in_calls.count > 0;
    if (calls) activity.wait_reason = WaitReason::kGroup;
    since_ms = calls ? in_calls.since_ms : stage_since_ms_;
  } else if (reason_ == WaitReason::kData && rows_behind_.empty()) {
    activity.subject = opened_;
  } else if (reason_ == WaitReason::kData) {
    activity.wait_reason = WaitReason::kRows;
    activity.subject = rows_behind_;
    since_ms = rows_since_ms_;
  }
  activity.for_ms = now_ms - since_ms;
  return activity;
}

}  // namespace hdps
