// One pass over the labels of a batch.
#include "worker/step/label_count.h"

#include <algorithm>

namespace hdps {

LabelTally CountLabels(const Batch& batch) {
  LabelTally tally;
  if (batch.labels.empty()) return tally;
  const auto [least, largest] = std::minmax_element(batch.labels.begin(), batch.labels.end());
  tally.count = batch.num_examples;
  tally.least = *least;
  tally.largest = *largest;
  tally.texts = batch.positive_texts;
  return tally;
}

}  // namespace hdps
