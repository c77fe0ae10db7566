// The job file that stands beside made data: it trains as it is.
#pragma once

#include <string>

#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {

// JSON. The model is of the family that decides the labels, and data paths are relative, so that
// the folder may be moved.
std::string JobOfLog(const SyntheticLogSpec& spec);
// 784-512-512-10, relu and softmax, by sgd. Of IDX files it is the job that data parallel training
// is usually shown with: 32 pictures for each of 8 workers, gradients by allreduce.
std::string JobOfDigits(const SyntheticDigitsSpec& spec);

}  // namespace hdps
