// Records what the threads of a worker's compute side are doing; the worker's loop reads it.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/activity.h"
#include "worker/collective/collective.h"

namespace hdps {

struct Activity;

// Invariant: Now() returns what the compute thread reported last: its stage, and the outermost wait
// that has not ended within it. Safe to call from any thread; no call blocks for long.
class ActivityBoard {
 public:
  // `clock` must outlive the board.
  explicit ActivityBoard(MonotonicClock& clock)
      : clock_(clock), calls_(*this, &in_calls_), lane_calls_(*this, &in_lane_calls_) {}

  // Is called when the compute thread begins a stage. `stage` is a literal.
  void Enter(const char* stage, const std::string& subject = "") HDPS_EXCLUDES(mutex_);
  // Is called when a data file is opened; the file is what a wait for data reports.
  void Opened(const std::string& path) HDPS_EXCLUDES(mutex_);

  // Is called while the reader waits for rows of a followed log or a topic: `behind` is the place
  // of the last one; "" when there was more. Returns for how many milliseconds it has waited.
  int64_t AwaitRows(const std::string& behind) HDPS_EXCLUDES(mutex_);

  // Keeps what holds this worker up, for people: a broker that is away; "": nothing.
  void SetTrouble(const std::string& trouble) HDPS_EXCLUDES(mutex_);
  std::string trouble() const HDPS_EXCLUDES(mutex_);

  // Marks the compute thread as waiting during its lifetime. Does nothing if `board` is null.
  class Waiting {
   public:
    Waiting(ActivityBoard* board, WaitReason reason);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    ActivityBoard* const board_;
    WaitReason before_ = WaitReason::kNone;
    int64_t before_since_ms_ = 0;
  };

  // Watches of collective calls: calls() counts those in which the compute thread waits for other
  // workers after computing, lane_calls() those that are part of computing.
  CollectiveWatch* calls() { return &calls_; }
  CollectiveWatch* lane_calls() { return &lane_calls_; }

  // Returns the current activity without `awaited`, which the loop fills in.
  Activity Now() const HDPS_EXCLUDES(mutex_);

  static constexpr char kCompute[] = "compute";

 private:
  struct InCalls {
    uint32_t count = 0;
    int64_t since_ms = 0;  // Time at which the last call began.
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
  WaitReason reason_ HDPS_GUARDED_BY(mutex_) = WaitReason::kNone;
  int64_t reason_since_ms_ HDPS_GUARDED_BY(mutex_) = 0;
  std::string opened_ HDPS_GUARDED_BY(mutex_);
  std::string rows_behind_ HDPS_GUARDED_BY(mutex_);  // Empty: the reader waits for no rows.
  int64_t rows_since_ms_ HDPS_GUARDED_BY(mutex_) = 0;
  std::string trouble_ HDPS_GUARDED_BY(mutex_);
  InCalls in_calls_ HDPS_GUARDED_BY(mutex_), in_lane_calls_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
