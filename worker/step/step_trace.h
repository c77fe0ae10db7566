// Records the first steps of a run as events in the format of Chrome's tracing (about://tracing,
// ui.perfetto.dev).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"
#include "kernels/device_span.h"
#include "worker/model/step_watch.h"

namespace hdps {

// Events of the workers of one process. In Chrome's format a worker is a process, a track a thread.
//
// Safe to call from any thread.
class TraceEvents {
 public:
  void Add(uint32_t worker, const std::string& track, const std::string& what, int64_t begin_ns,
           int64_t end_ns) HDPS_EXCLUDES(mutex_);
  // Returns {"traceEvents": [...]}: complete events ("X"), with times in microseconds since the
  // first event.
  std::string Json() const HDPS_EXCLUDES(mutex_);

 private:
  struct Event {
    uint32_t worker = 0;
    size_t track = 0;
    std::string what;
    int64_t begin_ns = 0, end_ns = 0;
  };

  mutable Mutex mutex_;
  std::map<std::pair<uint32_t, std::string>, size_t> tracks_ HDPS_GUARDED_BY(mutex_);
  std::vector<Event> events_ HDPS_GUARDED_BY(mutex_);
};

// Traces the first `steps` steps of one worker.
class StepTrace : public StepWatch {
 public:
  // Requires: `events` and `clock` outlive it.
  StepTrace(TraceEvents& events, MonotonicClock& clock, uint32_t worker, uint64_t steps)
      : events_(events), clock_(clock), worker_(worker), left_(steps) {}

  // Is true while steps are traced.
  bool watches() const { return left_ > 0; }
  void EndStep() {
    if (left_ > 0) --left_;
  }
  // Adds what the model's device did in these steps; each kind of work has its own track.
  void AddDevice(const std::vector<DeviceSpan>& spans);
  int64_t NowNs() override { return clock_.NowNs(); }
  void Ended(const std::string& track, const std::string& what, int64_t begin_ns) override {
    if (left_ > 0) events_.Add(worker_, track, what, begin_ns, NowNs());
  }

 private:
  TraceEvents& events_;
  MonotonicClock& clock_;
  const uint32_t worker_;
  std::atomic<uint64_t> left_;
};

}  // namespace hdps
