// Measures the constants of a machine that `hdps plan` needs.
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

// Samples of each constant by "CASE.FIGURE", one per repeat.
using ConstantSamples = std::map<std::string, std::vector<double>>;

// Returns the job that is measured with a model: Wide&Deep on the log in `folder`.
inline constexpr uint32_t kConstantsBatch = 4096;
std::string ConstantsJob(uint32_t dim, const std::string& hidden, const std::string& folder,
                         const std::string& first_layer);
// Number of different batches, so that a step does not find its data in the caches.
inline constexpr size_t kConstantsBatches = 6;
Result<std::vector<Batch>> FirstBatches(FileSystem& files, const DataSpec& data, size_t count);

// Measures the layers beside their products.
Status MeasureLayers(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// Measures how the rows of micro-batches are cut out of those of the step, and their gradients
// summed.
Status MeasureParts(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// Measures how threads on shared cores slow each other down.
Status MeasureSharing(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// Measures exchanges between a worker and a server, and the server's part in them.
Status MeasureRows(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples);
// Measures how long a row takes to come back from disk.
Status MeasureTier(const BenchSetting& setting, ConstantSamples* samples);
// Measures all constants, in one or two minutes.
Result<ConstantSamples> MeasureConstants(const BenchSetting& setting, FileSystem& files);
// Returns the constants as medians of the samples.
Result<MachineConstants> ConstantsOf(const ConstantSamples& samples);

}  // namespace hdps
