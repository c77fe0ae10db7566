// Who is told what a step does and for how long, so that people can look at what overlaps.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace hdps {

// Calls come from any thread.
class StepWatch {
 public:
  virtual ~StepWatch() = default;
  virtual int64_t NowNs() = 0;
  // `what` has lasted from then until now. What shares a track never overlaps.
  virtual void Ended(const std::string& track, const std::string& what, int64_t begin_ns) = 0;
};

// From its making to its end; nothing where there is no watch.
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
