// A checkpoint's weights and keys as a folder that is mapped, and the memory that they take.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"

namespace hdps {

struct Job;

// Returns whether a checkpoint is a folder of WriteServingFolder(). It is opened as others are, and
// its rows are mapped whatever form is asked for. It has no optimizer's state.
bool IsServingFolder(const Manifest& manifest);

// Writes the checkpoint into `folder`, which exists and is empty: a manifest as that of a full
// checkpoint, a file of FlatRows a shard, the vocabulary. Needs the memory of WriteFlat() for each
// thread of the executor. `job` is that of the checkpoint with its vocabulary.
Status WriteServingFolder(FileSystem& files, Executor& executor, const FoundCheckpoint& found,
                          const Job& job, const std::string& folder);

struct ServingNeed {
  uint64_t rows = 0;
  uint64_t bytes = 0;        // Of weights, keys and index as FlatRows.
  uint64_t index_bytes = 0;  // Of the index alone, which is in memory also where rows are mapped.
};
// Returns what the rows of a checkpoint take at least, from the headers of its files alone. Rows
// that only its deltas have are left out. Of a serving folder it is the index, which is not mapped.
Result<ServingNeed> LeastServingNeed(FileSystem& files, const FoundCheckpoint& found,
                                     const Job& job);

// kResourceExhausted says what is missing if `need` does not fit beside what the process has now
// into the memory of the machine and its limits.
Status CheckFits(FileSystem& files, const ServingNeed& need);

}  // namespace hdps
