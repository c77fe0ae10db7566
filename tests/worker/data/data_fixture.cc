// Implements the fixture of the readers' tests.
#include "tests/worker/data/data_fixture.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

#include "common/job/spec/data_spec.h"

namespace hdps {

void WriteText(FileSystem& files, const std::string& path, const std::string& text) {
  auto file = files.Create(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE((*file)->Append(std::as_bytes(std::span(text))).ok());
  ASSERT_TRUE((*file)->Close().ok());
}

DataSpec NumberedRows() {
  DataSpec data;
  data.columns.resize(3);
  data.columns[0].name = "label";
  data.columns[0].type = ColumnType::kLabel;
  data.columns[1].name = "id";
  data.columns[1].type = ColumnType::kNumeric;
  data.columns[2].name = "color";
  data.shuffle_rows = 16;
  return data;
}

std::string NumberedText(int begin, int end) {
  std::string text;
  for (int id = begin; id < end; ++id) {
    text += "0," + std::to_string(id) + ",c" + std::to_string(id) + "\n";
  }
  return text;
}

FeatureSpec Bucketized(const std::string& name, const std::string& from,
                       std::vector<double> boundaries) {
  FeatureSpec spec;
  spec.name = name;
  spec.kind = FeatureKind::kBucketized;
  spec.from = {from};
  spec.boundaries = std::move(boundaries);
  return spec;
}

FeatureSpec Crossed(const std::string& name, std::vector<std::string> from, uint64_t hash_buckets) {
  FeatureSpec spec;
  spec.name = name;
  spec.from = std::move(from);
  spec.hash_buckets = hash_buckets;
  return spec;
}

std::vector<Batch> ReadEpoch(BatchReader& reader, uint32_t epoch, uint64_t skip_steps) {
  std::vector<Batch> batches;
  const Status started = reader.StartEpoch(epoch, skip_steps);
  EXPECT_TRUE(started.ok()) << started.message();
  while (started.ok()) {
    Result<std::optional<Batch>> batch = reader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || !batch->has_value()) break;
    batches.push_back(std::move(**batch));
  }
  return batches;
}

std::vector<int> IdsOf(const Batch& batch) {
  std::vector<int> ids;
  for (uint32_t i = 0; i < batch.num_examples; ++i) {
    ids.push_back(static_cast<int>(batch.numeric[size_t{i} * batch.num_numeric]));
  }
  return ids;
}

std::vector<int> IdsOf(const std::vector<Batch>& batches) {
  std::vector<int> ids;
  for (const Batch& batch : batches) {
    for (int id : IdsOf(batch)) ids.push_back(id);
  }
  return ids;
}

void ExpectSame(const std::vector<Batch>& one, const std::vector<Batch>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t b = 0; b < one.size(); ++b) {
    SCOPED_TRACE("batch " + std::to_string(b));
    const Batch &x = one[b], &y = other[b];
    EXPECT_EQ(x.num_examples, y.num_examples);
    EXPECT_EQ(x.num_labels, y.num_labels);
    EXPECT_EQ(x.labels, y.labels);
    EXPECT_EQ(x.weights, y.weights);
    EXPECT_EQ(x.groups, y.groups);
    EXPECT_EQ(x.unknown_ids, y.unknown_ids);
    EXPECT_EQ(x.rows, y.rows);
    EXPECT_EQ(x.num_numeric, y.num_numeric);
    EXPECT_EQ(x.numeric, y.numeric);
    EXPECT_EQ(x.positive_texts, y.positive_texts);
    EXPECT_EQ(x.first_row, y.first_row);
    ASSERT_EQ(x.sparse.size(), y.sparse.size());
    for (size_t f = 0; f < x.sparse.size(); ++f) {
      EXPECT_EQ(x.sparse[f].offsets, y.sparse[f].offsets);
      EXPECT_EQ(x.sparse[f].keys, y.sparse[f].keys);
      EXPECT_EQ(x.sparse[f].weights, y.sparse[f].weights);
    }
  }
}

TwoEpochs ReadTwoEpochs(FileSystem& files, const DataSpec& data, const ReaderOptions& options) {
  TwoEpochs read;
  auto reader = NewBatchReader(files, data, data.train, options);
  Status status = reader.status();
  for (uint32_t epoch = 0; status.ok() && epoch < 2; ++epoch) {
    status = (*reader)->StartEpoch(epoch, 0);
    while (status.ok()) {
      Result<std::optional<Batch>> batch = (*reader)->Next();
      status = batch.status();
      if (!status.ok() || !batch->has_value()) break;
      read.batches.push_back(**std::move(batch));
    }
    read.bad_rows += (*reader)->bad_rows();
  }
  read.problem = status.message();
  return read;
}

void ManyThreads::ParallelFor(size_t count, const std::function<void(size_t)>& body) {
  std::vector<std::thread> pieces;
  for (size_t i = 0; i < count; ++i) pieces.emplace_back([&body, i] { body(i); });
  for (std::thread& piece : pieces) piece.join();
  loops += count > 1 ? 1 : 0;
}

}  // namespace hdps
