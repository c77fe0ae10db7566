// Records what a member does in some steps, as spans of time.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

// One span, as members send it. `track` and `name` are positions among the words of its part.
struct Span {
  int64_t begin_ns = 0, end_ns = 0;  // By the clock of the member.
  Clock step = -1;                   // -1: the span belongs to no single step.
  uint64_t request = 0;              // The same number at both ends of a request; 0: none.
  uint16_t track = 0, name = 0;
  uint32_t serves = 0;  // 1: the span answers the request; 0: it is the request.
};
static_assert(std::has_unique_object_representations_v<Span>, "no padding on the wire");

// Some spans of a member, and the words that they name.
struct SpanPart {
  std::vector<std::string> words;
  std::vector<Span> spans;
};

// What a span belongs to besides its track.
struct SpanOf {
  Clock step = -1;
  uint64_t request = 0;
  bool serves = false;
};

// Returns the number by which both ends of a request name it.
inline uint64_t RequestLink(PeerId caller, uint64_t request_id) {
  return MixBits(caller.value + MixBits(request_id)) | 1;
}

// Records the spans of one member in the steps [from, until).
//
// Invariant: outside these steps Records() and on() are one load and nothing is kept. At most
// kSpansMax spans are kept of one recording; what is left out is counted.
//
// Safe to call from any thread.
class SpanRecorder {
 public:
  static constexpr size_t kSpansMax = 1'000'000;

  explicit SpanRecorder(MonotonicClock& clock) : clock_(clock) {}  // `clock` must outlive it.

  // Begins a recording of these steps, and forgets what an earlier one has left.
  void Record(Clock from, Clock until) HDPS_EXCLUDES(mutex_);
  // Begins a recording of that many steps from the first one that begins.
  void RecordFirst(uint64_t steps) HDPS_EXCLUDES(mutex_);
  // Ends the recording; Take() returns what is left of it.
  void Stop() HDPS_EXCLUDES(mutex_);

  bool Records(Clock step) {
    return step >= from_.load(std::memory_order_acquire) && step < UntilFrom(step);
  }
  // Tells which step this worker computes, for spans that do not say it themselves.
  void BeginStep(Clock step) {
    step_.store(step, std::memory_order_relaxed);
    on_.store(Records(step), std::memory_order_relaxed);
  }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  Clock step() const { return step_.load(std::memory_order_relaxed); }
  int64_t NowNs() { return clock_.NowNs(); }

  // Adds a span; dropped unless a recording is under way.
  void Add(const std::string& track, const std::string& name, int64_t begin_ns, int64_t end_ns,
           const SpanOf& of = {}) HDPS_EXCLUDES(mutex_);

  size_t size() const { return size_.load(std::memory_order_relaxed); }  // Spans not yet taken.
  // Takes the oldest spans, at most `spans_max`.
  SpanPart Take(size_t spans_max = kSpansMax) HDPS_EXCLUDES(mutex_);
  uint64_t left_out() const HDPS_EXCLUDES(mutex_);

 private:
  static constexpr Clock kOff = std::numeric_limits<Clock>::max();

  Clock UntilFrom(Clock step);
  void Begin(Clock from, Clock until) HDPS_EXCLUDES(mutex_);
  uint16_t WordOf(const std::string& word) HDPS_REQUIRES(mutex_);

  MonotonicClock& clock_;
  std::atomic<Clock> from_ = kOff;
  std::atomic<Clock> until_ = 0;  // -N: N steps from the first one that comes.
  std::atomic<Clock> step_ = -1;
  std::atomic<bool> on_ = false;
  std::atomic<size_t> size_ = 0;

  mutable Mutex mutex_;
  bool open_ HDPS_GUARDED_BY(mutex_) = false;
  std::map<std::string, uint16_t> numbers_ HDPS_GUARDED_BY(mutex_);
  std::vector<std::string> words_ HDPS_GUARDED_BY(mutex_);
  std::vector<Span> spans_ HDPS_GUARDED_BY(mutex_);
  uint64_t kept_ HDPS_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ HDPS_GUARDED_BY(mutex_) = 0;
};

// Records the time from construction to destruction, if the step is recorded. Spans of one track
// must not overlap partly.
class RecordedSpan {
 public:
  // Takes the step that the worker computes. `recorder` may be null.
  template <typename MakeTrack, typename MakeName>
  RecordedSpan(SpanRecorder* recorder, const MakeTrack& track, const MakeName& name)
      : recorder_(recorder != nullptr && recorder->on() ? recorder : nullptr) {
    if (recorder_ == nullptr) return;
    track_ = track();
    name_ = name();
    of_.step = recorder_->step();
    begin_ns_ = recorder_->NowNs();
  }
  RecordedSpan(SpanRecorder* recorder, const char* track, const char* name)
      : RecordedSpan(
            recorder, [track] { return track; }, [name] { return name; }) {}
  // Takes the step that `of` names.
  RecordedSpan(SpanRecorder* recorder, const SpanOf& of, const char* track, const char* name)
      : recorder_(recorder != nullptr && recorder->Records(of.step) ? recorder : nullptr), of_(of) {
    if (recorder_ == nullptr) return;
    track_ = track;
    name_ = name;
    begin_ns_ = recorder_->NowNs();
  }
  ~RecordedSpan() { End(); }
  RecordedSpan(const RecordedSpan&) = delete;
  RecordedSpan& operator=(const RecordedSpan&) = delete;

  void End() {
    if (recorder_ != nullptr) recorder_->Add(track_, name_, begin_ns_, recorder_->NowNs(), of_);
    recorder_ = nullptr;
  }

 private:
  SpanRecorder* recorder_;
  SpanOf of_;
  std::string track_, name_;
  int64_t begin_ns_ = 0;
};

}  // namespace hdps
