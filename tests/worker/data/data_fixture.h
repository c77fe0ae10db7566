// Files in memory and specs of data, as the tests of the readers need them.
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

// label, id (numeric), color (categorical): the id tells the rows apart.
DataSpec NumberedRows();
// "0,<id>,c<id>\n" for ids in [begin, end).
std::string NumberedText(int begin, int end);

FeatureSpec Bucketized(const std::string& name, const std::string& from,
                       std::vector<double> boundaries);
FeatureSpec Crossed(const std::string& name, std::vector<std::string> from,
                    uint64_t hash_buckets = 0);

// Every batch of one epoch; fails the test on an error.
std::vector<Batch> ReadEpoch(BatchReader& reader, uint32_t epoch = 0, uint64_t skip_steps = 0);
// The first numeric column of all of them.
std::vector<int> IdsOf(const std::vector<Batch>& batches);
std::vector<int> IdsOf(const Batch& batch);

}  // namespace hdps
