// Counts labels in one pass over a batch.
#include "worker/step/label_count.h"

#include <algorithm>
#include <span>

#include "common/protocol/tallies.h"

namespace hdps {

LabelTally CountLabels(const Batch& batch) {
  LabelTally tally;
  for (const uint32_t ids : batch.unknown_ids) tally.unknown_ids += ids;
  if (batch.labels.empty()) return tally;
  const size_t tasks = batch.num_labels;
  const auto add = [&](float label) {
    tally.least = std::min(tally.least, label);
    tally.largest = std::max(tally.largest, label);
  };
  for (size_t i = 0; i < batch.num_examples; ++i) {
    if (!batch.weights.empty() && batch.weights[i] == 0) {
      ++tally.weightless;
      continue;
    }
    const std::span<const float> labels = std::span(batch.labels).subspan(i * tasks, tasks);
    if (tally.count++ == 0) tally.least = tally.largest = labels[0];
    for (const float label : labels) add(label);
  }
  tally.texts = tally.count == 0 ? 0 : batch.positive_texts;
  return tally;
}

}  // namespace hdps
