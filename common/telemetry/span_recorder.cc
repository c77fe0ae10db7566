// Keeps spans in the order of their ends, and each word once.
#include "common/telemetry/span_recorder.h"

#include <algorithm>

namespace hdps {

void SpanRecorder::Begin(Clock from, Clock until) {
  const MutexLock lock(mutex_);
  from_.store(kOff, std::memory_order_release);
  spans_.clear();
  size_ = 0;
  kept_ = left_out_ = 0;
  open_ = true;
  until_.store(until, std::memory_order_relaxed);
  from_.store(from, std::memory_order_release);
}

void SpanRecorder::Record(Clock from, Clock until) { Begin(from, until); }
void SpanRecorder::RecordFirst(uint64_t steps) { Begin(0, -static_cast<Clock>(steps)); }

void SpanRecorder::Stop() {
  from_.store(kOff, std::memory_order_release);
  on_.store(false, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  open_ = false;
}

Clock SpanRecorder::UntilFrom(Clock step) {
  Clock until = until_.load(std::memory_order_relaxed);
  if (until >= 0) return until;
  const Clock end = step - until;
  return until_.compare_exchange_strong(until, end) ? end : until;
}

uint16_t SpanRecorder::WordOf(const std::string& word) {
  const auto [at, is_new] = numbers_.try_emplace(word, static_cast<uint16_t>(words_.size()));
  if (is_new) words_.push_back(word);
  return at->second;
}

void SpanRecorder::Add(const std::string& track, const std::string& name, int64_t begin_ns,
                       int64_t end_ns, const SpanOf& of) {
  constexpr size_t kWordsMax = 60'000;
  const MutexLock lock(mutex_);
  if (!open_) return;
  if (kept_ >= kSpansMax || words_.size() >= kWordsMax) {
    ++left_out_;
    return;
  }
  ++kept_;
  spans_.push_back(
      {begin_ns, end_ns, of.step, of.request, WordOf(track), WordOf(name), of.serves ? 1u : 0u});
  size_.store(spans_.size(), std::memory_order_relaxed);
}

SpanPart SpanRecorder::Take(size_t spans_max) {
  const MutexLock lock(mutex_);
  SpanPart part;
  part.words = words_;
  const auto end = spans_.begin() + static_cast<ptrdiff_t>(std::min(spans_max, spans_.size()));
  part.spans.assign(spans_.begin(), end);
  spans_.erase(spans_.begin(), end);
  size_.store(spans_.size(), std::memory_order_relaxed);
  return part;
}

uint64_t SpanRecorder::left_out() const {
  const MutexLock lock(mutex_);
  return left_out_;
}

}  // namespace hdps
