// Writes the job file beside generated data; it trains without changes.
#pragma once

#include <string>

#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {

// Returns the job as JSON. Its model is of the family that decides the labels. Its data paths are
// relative, so the folder can be moved.
std::string JobOfLog(const SyntheticLogSpec& spec);
// Returns a job for 784-512-512-10 with relu and softmax, trained by sgd. For IDX files it is the
// usual example of data parallel training: 32 pictures for each of 8 workers, with allreduce.
std::string JobOfDigits(const SyntheticDigitsSpec& spec);

}  // namespace hdps
