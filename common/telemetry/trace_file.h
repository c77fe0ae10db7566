// Writes spans of several members in the format of Chrome's tracing (about://tracing,
// ui.perfetto.dev).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/telemetry/span_recorder.h"

namespace hdps {

struct TracedMember {
  std::string name;
  std::vector<SpanPart> parts = {};
  uint64_t left_out = 0;
  // What is added to the member's clock for that of the scheduler, and by how much that may be
  // wrong; -1: not known.
  int64_t offset_ns = 0, uncertainty_ns = -1;
};

struct Trace {
  std::vector<TracedMember> members;
  Clock from = 0, until = 0;            // The steps that were asked for; equal: not known.
  std::vector<std::string> notes = {};  // What is missing, and why.
};

// Returns the JSON of a trace: a process for each member, a track for each kind of its work, times
// in microseconds since the first span, and arrows from each request to its serving and back.
// Spans of one track that overlap partly are shown on tracks side by side. "otherData" has the
// uncertainty of the clocks in microseconds, the spans that were left out, and the notes.
std::string TraceJson(const Trace& trace);

// What the members of one process have recorded. All have the same clock.
struct RunTrace {
  // [servers], [workers]; made by the run.
  std::vector<std::unique_ptr<SpanRecorder>> servers, workers;
  std::string Json() const;  // Valid after the run; takes the spans.
};

}  // namespace hdps
