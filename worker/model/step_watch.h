// Reports what a step does and for how long, so that people can see what overlaps.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace hdps {

// Is told of spans of time. Safe to call from any thread.
class StepWatch {
 public:
  virtual ~StepWatch() = default;
  virtual int64_t NowNs() = 0;
  // `what` has lasted from `begin_ns` until now. Spans of one track must not overlap.
  virtual void Ended(const std::string& track, const std::string& what, int64_t begin_ns) = 0;
};

// Reports a span of time from construction to destruction; does nothing without a watch.
class WatchedSpan {
 public:
  template <typename MakeTrack, typename MakeWhat>
  WatchedSpan(StepWatch* watch, const MakeTrack& track, const MakeWhat& what) : watch_(watch) {
    if (watch_ == nullptr) return;
    track_ = track();
    what_ = what();
    begin_ns_ = watch_->NowNs();
  }
  WatchedSpan(StepWatch* watch, const char* track, const char* what)
      : WatchedSpan(
            watch, [track] { return track; }, [what] { return what; }) {}
  ~WatchedSpan() {
    if (watch_ != nullptr) watch_->Ended(track_, what_, begin_ns_);
  }
  WatchedSpan(const WatchedSpan&) = delete;
  WatchedSpan& operator=(const WatchedSpan&) = delete;

 private:
  StepWatch* const watch_;
  std::string track_, what_;
  int64_t begin_ns_ = 0;
};

}  // namespace hdps
