// Measures what `hdps plan` must know of a machine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "tools/plan/machine_constants.h"
#include "worker/data/batch.h"

namespace hdps {

struct DataSpec;

// One sample a repeat of each constant, by "CASE.FIGURE".
using ConstantSamples = std::map<std::string, std::vector<double>>;

// What is measured with a model: Wide&Deep on the log in `folder`.
inline constexpr uint32_t kConstantsBatch = 4096;
std::string ConstantsJob(uint32_t dim, const std::string& hidden, const std::string& folder,
                         const std::string& first_layer);
// Different batches, so that what a step finds is not at hand.
inline constexpr size_t kConstantsBatches = 6;
Result<std::vector<Batch>> FirstBatches(FileSystem& files, const DataSpec& data, size_t count);

// Layers beside their products.
Status MeasureLayers(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// Rows of micro-batches cut out of those of the step, and their gradients added up.
Status MeasureParts(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// What threads cost each other that share the cores.
Status MeasureSharing(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// Exchanges between a worker and a server, and the server's share of them.
Status MeasureRows(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// What it costs that a row comes back from disk.
Status MeasureTier(const BenchSetting& setting, ConstantSamples* samples);
// All of them, in less than a minute or two.
Result<ConstantSamples> MeasureConstants(const BenchSetting& setting, FileSystem& files);
// Their medians.
Result<MachineConstants> ConstantsOf(const ConstantSamples& samples);

}  // namespace hdps
