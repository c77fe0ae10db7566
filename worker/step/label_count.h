// Which labels a batch has: are they what they were meant to be?
// be.
#pragma once

#include "common/protocol/messages.h"
#include "worker/data/batch.h"

namespace hdps {

LabelTally CountLabels(const Batch& batch);

}  // namespace hdps
