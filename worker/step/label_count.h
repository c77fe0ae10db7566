// Counts the labels of a batch and its ids without a row, so that a wrong label column, class or
// vocab_size can be noticed.
#pragma once

#include "worker/data/batch.h"

namespace hdps {

struct LabelTally;

LabelTally CountLabels(const Batch& batch);

}  // namespace hdps
