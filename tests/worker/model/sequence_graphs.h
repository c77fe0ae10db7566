// Makes graphs over TestData(5, 4) with the layers for sequences, attention, experts and towers.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"

namespace hdps {

struct NamedJob {
  std::string name;
  Job job;
  bool needs_bags = false;  // With one key per feature some gradients are always 0.
};
std::vector<NamedJob> SequenceGraphs();

}  // namespace hdps
