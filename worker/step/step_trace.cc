// Keeps events as they come, and prints them with names for their tracks.
#include "worker/step/step_trace.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace hdps {

void TraceEvents::Add(uint32_t worker, const std::string& track, const std::string& what,
                      int64_t begin_ns, int64_t end_ns) {
  MutexLock lock(mutex_);
  const size_t number = tracks_.try_emplace({worker, track}, tracks_.size()).first->second;
  events_.push_back({worker, number, what, begin_ns, end_ns});
}

std::string TraceEvents::Json() const {
  MutexLock lock(mutex_);
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const Event& event : events_) first = std::min(first, event.begin_ns);
  std::string text = "{\"traceEvents\": [";
  const char* before = "\n";
  char line[128];
  for (const auto& [of, number] : tracks_) {
    std::snprintf(line, sizeof(line), R"({"ph": "M", "pid": %u, "tid": %zu, )", of.first, number);
    text += before;
    text += line;
    text += R"("name": "thread_name", "args": {"name": ")" + of.second + "\"}}";
    before = ",\n";
  }
  for (const Event& event : events_) {
    std::snprintf(line, sizeof(line), R"("pid": %u, "tid": %zu, "ts": %.3f, "dur": %.3f})",
                  event.worker, event.track, static_cast<double>(event.begin_ns - first) / 1e3,
                  static_cast<double>(event.end_ns - event.begin_ns) / 1e3);
    text += before;
    text += R"({"ph": "X", "name": ")" + event.what + "\", " + line;
    before = ",\n";
  }
  return text + "\n]}\n";
}

void StepTrace::AddDevice(const std::vector<DeviceSpan>& spans) {
  for (const DeviceSpan& span : spans) {
    const char* const what = span.kind == DeviceSpan::Kind::kCopyUp     ? "copy up"
                             : span.kind == DeviceSpan::Kind::kCopyDown ? "copy down"
                                                                        : "compute";
    events_.Add(worker_, std::string("device, ") + what, what, span.begin_ns, span.end_ns);
  }
}

}  // namespace hdps
