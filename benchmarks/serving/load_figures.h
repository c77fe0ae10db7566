// Turns what a load saw into figures.
#pragma once

#include <string>

#include "benchmarks/serving/http_load.h"

namespace hdps {

// Returns a JSON object: rows/s, quantiles of the latency, failures, versions, and the worst of the
// plan's seconds. `rows` is the number of rows of each request. Latency counts from the planned
// time; quantiles are of answers with status 200, of which each is an observed value (no
// interpolation).
std::string LoadFigures(const LoadPlan& plan, const LoadReport& report, double rows);

}  // namespace hdps
