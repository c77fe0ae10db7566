// Measures what `hdps plan` must know of a machine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "tools/machine_constants.h"

namespace hdps {

// One sample a repeat of each constant, by "CASE.FIGURE".
using ConstantSamples = std::map<std::string, std::vector<double>>;

// Exchanges between a worker and a server, and the server's share of them.
Status MeasureRows(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// All of them, in less than a minute or two.
Result<ConstantSamples> MeasureConstants(const BenchSetting& setting, FileSystem& files);
// Their medians.
Result<MachineConstants> ConstantsOf(const ConstantSamples& samples);

}  // namespace hdps
