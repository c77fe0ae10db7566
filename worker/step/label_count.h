// Which labels a batch has: are they what they were meant to be?
// be.
#pragma once

#include "worker/data/batch.h"

namespace hdps {

struct LabelTally;

LabelTally CountLabels(const Batch& batch);

}  // namespace hdps
