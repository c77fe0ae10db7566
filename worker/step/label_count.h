// Counts the labels of a batch, so that a wrong label column or class can be noticed.
#pragma once

#include "worker/data/batch.h"

namespace hdps {

struct LabelTally;

LabelTally CountLabels(const Batch& batch);

}  // namespace hdps
