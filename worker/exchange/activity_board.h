// What the threads of a worker's compute side are at, written by them and read by its loop.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/activity.h"
#include "worker/collective/collective.h"

namespace hdps {

struct Activity;

// Invariant: Now() is what the compute thread has said last: its stage, and within it the outermost
// wait of one kind that has not ended. Any thread may call anything; nothing waits here.
class ActivityBoard {
 public:
  // `clock` must outlive the board.
  explicit ActivityBoard(MonotonicClock& clock)
      : clock_(clock), calls_(*this, &in_calls_), lane_calls_(*this, &in_lane_calls_) {}

  // The compute thread begins with this. `stage` is a literal.
  void Enter(const char* stage, const std::string& subject = "") HDPS_EXCLUDES(mutex_);
  // A data file was opened: it is what is being read.
  void Opened(const std::string& path) HDPS_EXCLUDES(mutex_);

  // From its making to its end the compute thread waits; without a board it does nothing.
  class Waiting {
   public:
    Waiting(ActivityBoard* board, Hold hold);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    ActivityBoard* const board_;
    Hold before_ = Hold::kWork;
    int64_t before_since_ms_ = 0;
  };

  // Of the groups in which the compute thread waits for others at the end of its computing, and of
  // those whose calls are a part of computing.
  CollectiveWatch* calls() { return &calls_; }
  CollectiveWatch* lane_calls() { return &lane_calls_; }

  // Without `awaited`: the loop knows who it is.
  Activity Now() const HDPS_EXCLUDES(mutex_);

  static constexpr char kCompute[] = "compute";

 private:
  struct InCalls {
    uint32_t count = 0;
    int64_t since_ms = 0;  // The last one began.
  };
  class Calls : public CollectiveWatch {
   public:
    Calls(ActivityBoard& board, InCalls* calls) : board_(board), calls_(calls) {}
    void CallBegun() override;
    void CallEnded() override;

   private:
    ActivityBoard& board_;
    InCalls* const calls_;
  };

  MonotonicClock& clock_;
  Calls calls_, lane_calls_;
  mutable Mutex mutex_;
  const char* stage_ HDPS_GUARDED_BY(mutex_) = "";
  std::string subject_ HDPS_GUARDED_BY(mutex_);
  int64_t stage_since_ms_ HDPS_GUARDED_BY(mutex_) = 0;
  Hold hold_ HDPS_GUARDED_BY(mutex_) = Hold::kWork;
  int64_t hold_since_ms_ HDPS_GUARDED_BY(mutex_) = 0;
  std::string opened_ HDPS_GUARDED_BY(mutex_);
  InCalls in_calls_ HDPS_GUARDED_BY(mutex_), in_lane_calls_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
