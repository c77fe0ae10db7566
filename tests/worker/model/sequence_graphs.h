// Graphs over TestData(5, 4) of the layers for sequences, attention, experts and towers.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"

namespace hdps {

struct NamedJob {
  std::string name;
  Job job;
  bool needs_bags = false;  // With one key a feature some gradient is 0, whatever is computed.
};
std::vector<NamedJob> SequenceGraphs();

}  // namespace hdps
