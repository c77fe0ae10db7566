// Tests that any bytes are rows or bad rows: nothing crashes, and every batch keeps its invariants.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

void ExpectWellFormed(const Batch& batch) {
  ASSERT_EQ(batch.labels.size(), batch.num_examples);
  ASSERT_EQ(batch.numeric.size(), size_t{batch.num_examples} * batch.num_numeric);
  for (float value : batch.numeric) EXPECT_TRUE(std::isfinite(value));
  for (float label : batch.labels) EXPECT_TRUE(label == 0 || label == 1);
  for (const SparseColumn& column : batch.sparse) {
    ASSERT_EQ(column.offsets.size(), batch.num_examples + 1u);
    EXPECT_EQ(column.offsets.front(), 0u);
    EXPECT_TRUE(std::is_sorted(column.offsets.begin(), column.offsets.end()));
    EXPECT_EQ(column.offsets.back(), column.keys.size());
    EXPECT_TRUE(column.weights.empty() || column.weights.size() == column.keys.size());
  }
}

DataSpec SpecOf(DataFormat format) {
  DataSpec data = NumberedRows();
  data.format = format;
  data.max_bad_rows = 1 << 30;
  data.num_fields = 5;
  if (format == DataFormat::kCsv) {
    data.columns.resize(4);
    data.columns[3].name = "tags";
    data.columns[3].type = ColumnType::kMulti;
    data.features = {Bucketized("b", "id", {0, 5}), Crossed("x", {"b", "tags", "color"}, 100)};
  } else {
    data.columns.clear();
  }
  return data;
}

std::string GoodLine(DataFormat format) {
  switch (format) {
    case DataFormat::kCsv:
      return "1,2.5,\"red\",a|b";
    case DataFormat::kCriteo:
      return "1" + std::string(13, '\t') + "5" + std::string(26, '\t') + "68fd1e64";
    case DataFormat::kLibsvm:
      return "-1 3:1 11:0.5 # end";
    case DataFormat::kLibffm:
      return "1 0:3:0.5 4:2:1";
    case DataFormat::kLibfm:
      return "-1 3:1 11:0.5 7:1 8:1 9:1";
    case DataFormat::kIdx:      // They have no lines of text: see idx_test.cc,
    case DataFormat::kParquet:  // parquet_damage_test.cc,
    case DataFormat::kTfrecord:
    case DataFormat::kJsonl:  // and row_formats_test.cc.
      break;
  }
  return "";
}

class HostileInputTest : public ::testing::TestWithParam<DataFormat> {};

// Returns `text` with some of its bytes changed, dropped or doubled.
std::string Mutate(std::string text, Random& random) {
  const std::string tempting = std::string("\t,|:\"# \r\0+-.e9\xff", 16);
  for (uint64_t n = random.Below(4); n > 0 && !text.empty(); --n) {
    const size_t at = random.Below(text.size());
    switch (random.Below(3)) {
      case 0:
        text[at] = tempting[random.Below(tempting.size())];
        break;
      case 1:
        text.erase(at, 1);
        break;
      default:
        text.insert(at, text.substr(at, random.Below(8)));
    }
  }
  return text;
}

TEST_P(HostileInputTest, NothingCrashes) {
  const auto files = NewMemoryFileSystem();
  Random random(17);
  uint64_t good_rows = 0, bad_rows = 0;
  for (int round = 0; round < 60; ++round) {
    std::string text;
    for (int line = 0; line < 200; ++line) {
      if (random.Below(4) == 0) {
        for (uint64_t n = random.Below(60); n > 0; --n) {
          text += static_cast<char>(random.Below(256));
        }
      } else {
        text += Mutate(GoodLine(GetParam()), random);
      }
      text += '\n';
    }
    WriteText(*files, "f", text);
    auto reader = NewBatchReader(*files, SpecOf(GetParam()), {"f"}, {.batch_size = 64});
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    for (const Batch& batch : ReadEpoch(**reader)) {
      ExpectWellFormed(batch);
      good_rows += batch.num_examples;
    }
    bad_rows += (*reader)->bad_rows();
  }
  EXPECT_GT(good_rows, 1000u) << "too hostile: the good paths were not reached";
  EXPECT_GT(bad_rows, 1000u) << "too kind: the bad paths were not reached";
}

INSTANTIATE_TEST_SUITE_P(Formats, HostileInputTest,
                         ::testing::Values(DataFormat::kCsv, DataFormat::kCriteo,
                                           DataFormat::kLibsvm, DataFormat::kLibffm,
                                           DataFormat::kLibfm));

}  // namespace
}  // namespace hdps
