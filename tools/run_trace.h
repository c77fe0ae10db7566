// The trace of a run whose members are in one process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/telemetry/span_recorder.h"

namespace hdps {

// What the members of one process have recorded. All have the same clock.
struct RunTrace {
  // [servers], [workers]; made by the run.
  std::vector<std::unique_ptr<SpanRecorder>> servers, workers;
  std::string Json() const;  // Valid after the run; takes the spans.
};

}  // namespace hdps
