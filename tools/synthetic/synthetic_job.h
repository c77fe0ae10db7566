// The job file that stands beside made data: it trains as it is.
#pragma once

#include <string>

#include "tools/synthetic/synthetic_log.h"

namespace hdps {

// JSON. The model is of the family that decides the labels, and data paths are relative, so that
// the folder may be moved.
std::string JobOfLog(const SyntheticLogSpec& spec);
std::string JobOfDigits();

}  // namespace hdps
