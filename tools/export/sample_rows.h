// Rows of data that an export is tried on: of the job's evaluation data, or drawn at random.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "tools/export/export.h"
#include "worker/model/step_parts.h"

namespace hdps {

// Invariant: batches have one part each, and their rows of all tables together take at most
// kSampleBytes or belong to the first batch.
struct SampleRows {
  std::vector<StepParts> batches;
  bool drawn = false;  // The values are not those of data.
};

// Reads the first rows of --data or of the evaluation data, without labels. If the job has no
// evaluation data, or its files are not here, draws values among the keys of a shard; the reason is
// told to the operator.
Result<SampleRows> ReadSample(const ExportTask& task);

}  // namespace hdps
