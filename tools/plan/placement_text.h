// Prints where a plan keeps the tables and dense layers of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/planning/placement.h"
#include "tools/plan/job_shape.h"

namespace hdps {

struct PlacementView {
  const PlacedJob& placed;
  const JobShape& shape;
  uint32_t servers = 1;
  double rows = 0;  // Distinct keys of the data.
};

// Returns a line for each group of tables and each layer with weights: its place, milliseconds of a
// step, bytes at a worker and at a server. Below are the sums, and the settings that take the
// placement.
std::string PlacementText(const PlacementView& view);

}  // namespace hdps
