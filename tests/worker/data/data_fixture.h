// Makes files in memory and data specs for the tests of readers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "worker/data/batch_reader.h"
#include "worker/data/formats/row_lanes.h"

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
// What a reader gives in its first two epochs, up to an error.
struct TwoEpochs {
  std::vector<Batch> batches;
  uint64_t bad_rows = 0;
  std::string problem;  // Empty: there is no error.
};
TwoEpochs ReadTwoEpochs(FileSystem& files, const DataSpec& data, const ReaderOptions& options);
// Returns the first numeric column of all batches.
std::vector<int> IdsOf(const std::vector<Batch>& batches);
std::vector<int> IdsOf(const Batch& batch);
// Compares all that batches have.
void ExpectSame(const std::vector<Batch>& one, const std::vector<Batch>& other);

// A thread for each piece.
class ManyThreads : public Executor {
 public:
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override;
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return kLaneThreadsMin; }

  int loops = 0;  // Those of several pieces.
};

}  // namespace hdps
