// Writes samples as JSON, for /api/v1 and hdps status.
#pragma once

#include <string>
#include <vector>

#include "common/telemetry/samples.h"

namespace hdps {

// Returns one object with a field for each figure, named after it: a number, or objects by the
// values of its labels, one inside the other, in the order of the labels. A histogram is
// {"count","sum","p50","p90","p99"} in the unit of its record. Numbers that are not finite are
// null.
std::string FiguresJson(const std::vector<Sample>& samples);

}  // namespace hdps
