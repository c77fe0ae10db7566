// Converts between a job's record and the manifest of a checkpoint.
#include "scheduler/job_record.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace hdps {

JobRecord JobRecord::WithoutProgress() const {
  JobRecord kept = *this;
  kept.epoch_rows = kept.examples_before = 0;
  kept.data_files.clear();
  kept.trained = kept.epoch = kept.last_epoch = {};
  kept.counts_before = {};
  kept.orders.clear();
  kept.trained_ms = 0;
  kept.step_times.clear();
  kept.offsets.clear();
  return kept;
}

void JobState::CountAsLost(const Manifest& checkpoint) {
  if (phase < JobPhase::kTrain) return;  // It was lost before, or there was nothing yet.
  const Clock clock = std::max(plan.position.clock, checkpoint.clock);
  summary.steps_again += static_cast<uint64_t>(clock - checkpoint.clock);
  const uint64_t examples = std::max(examples_before + trained.examples, checkpoint.examples);
  summary.examples_again += examples - checkpoint.examples;
}

Manifest ManifestOf(JobState state, const RowCounts& counts) {
  // A run that resumes from the manifest has trained nothing since.
  state.examples_before += state.trained.examples;
  state.counts_before.Add(counts);
  // These describe the present servers only.
  state.counts_before.fetched = state.counts_before.on_disk = 0;
  Manifest manifest;
  VisitFields(
      state, [&manifest]<typename Place = std::nullptr_t>(const char*, const auto& field, Kept,
                                                          Place place = nullptr) {
        if constexpr (!std::is_null_pointer_v<Place>) manifest.*place = field;
      });
  return manifest;
}

void GoOnFrom(const Manifest& manifest, JobState* state) {
  state->trained = {};
  VisitFields(
      *state, [&manifest]<typename Place = std::nullptr_t>(const char*, auto& field, Kept kept,
                                                           Place place = nullptr) {
        if constexpr (!std::is_null_pointer_v<Place>) {
          if (!kept.told_anew) field = manifest.*place;
        }
      });
}

}  // namespace hdps
