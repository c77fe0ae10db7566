// Graphs over TestData(5, 4) of the layers for sequences, attention, experts and towers.
#pragma once

#include <string>
#include <vector>

#include "common/job/job.h"

namespace hdps {

struct NamedJob {
  std::string name;
  Job job;
};
std::vector<NamedJob> SequenceGraphs();

}  // namespace hdps
