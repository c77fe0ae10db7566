// Makes files in memory and data specs for the tests of readers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/platform/file_system.h"
#include "worker/data/batch_reader.h"

namespace hdps {

struct DataSpec;
struct FeatureSpec;

void WriteText(FileSystem& files, const std::string& path, const std::string& text);

// Columns label, id (numeric) and color (categorical); the id identifies the row.
DataSpec NumberedRows();
// Returns the lines "0,<id>,c<id>
// " for ids in [begin, end).
std::string NumberedText(int begin, int end);

FeatureSpec Bucketized(const std::string& name, const std::string& from,
                       std::vector<double> boundaries);
FeatureSpec Crossed(const std::string& name, std::vector<std::string> from,
                    uint64_t hash_buckets = 0);

// Reads every batch of one epoch; fails the test on an error.
std::vector<Batch> ReadEpoch(BatchReader& reader, uint32_t epoch = 0, uint64_t skip_steps = 0);
// Returns the first numeric column of all batches.
std::vector<int> IdsOf(const std::vector<Batch>& batches);
std::vector<int> IdsOf(const Batch& batch);

}  // namespace hdps
