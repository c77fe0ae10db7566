// Puts the times of a step into the figures of its worker.
#include "worker/step/step_meters.h"

#include <algorithm>

namespace hdps {

static_assert(StepTimes::kParts.size() == kStageLabels.size());

void CountStep(const StepTimes& times, uint64_t examples, double loss_sum, Meters* meters) {
  meters->Observe(FigureNamed("hdps_worker_step_seconds"), times.total_ns);
  for (size_t part = 0; part < StepTimes::kParts.size(); ++part) {
    const int64_t ns = times.*StepTimes::kParts[part];
    if (ns <= 0) continue;
    meters->Add(FigureNamed("hdps_worker_stage_seconds_total"), static_cast<uint64_t>(ns), part);
  }
  meters->Add(FigureNamed("hdps_worker_examples_total"), examples);
  if (examples == 0) return;
  meters->Set(FigureNamed("hdps_worker_loss"), loss_sum / static_cast<double>(examples));
}

}  // namespace hdps
