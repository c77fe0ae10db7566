// Readings as values with names and labels, for whoever shows them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/telemetry/figure_layout.h"

namespace hdps {

// One value of a figure, or one histogram.
struct Sample {
  FigureId figure;
  std::vector<std::pair<std::string, std::string>> labels = {};  // Names and values.
  double value = 0;                    // Counters and gauges, in the unit of the record.
  std::vector<uint64_t> buckets = {};  // Histograms: how many values each bucket has, one beyond
                                       // the bounds included. Not cumulative.
  double sum = 0;                      // Histograms: the sum of all values, in the unit.
};

// Returns all samples of readings; none if the readings have another size than the layout, because
// they are those of another version. `names`: those of the layout. Figures of a process are left
// out where nobody has set its start time, because several members share that process.
std::vector<Sample> SamplesOf(const FigureLayout& layout, std::span<const uint64_t> readings,
                              const std::vector<std::string>& names);

// Adds readings of one layout: counters, histograms and gauges are added, number by number. Of
// hdps_worker_loss the mean remains, weighted by the examples of each side. Figures of a process
// become 0, because the sum is of several. Requires: both are empty or of the layout's size.
void AddReadings(const FigureLayout& layout, std::span<const uint64_t> more, Readings* sum);

// Returns the value below which `share` of a histogram's values lie, in its unit, linear within a
// bucket; NaN without values.
double QuantileOf(const Sample& histogram, double share);
uint64_t CountOf(const Sample& histogram);

}  // namespace hdps
