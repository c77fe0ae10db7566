// Tests that Parquet files are read as a CSV file of the same values, and that what cannot be read
// is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/records/record_fixture.h"
#include "worker/data/batch_reader.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/data_preview.h"
#include "worker/data/item_pool.h"
#include "worker/data/records/parquet_source.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kRows = 400;

class ParquetFilesTest : public ::testing::Test {
 protected:
  ParquetFilesTest() {
    for (const char* const name : {"rows.csv", "rows.parquet", "rows_other_types.parquet"}) {
      WriteText(*files_, name, BytesOfRecordFile(name));
    }
  }

  // Reads the table in all of its forms, and returns what the CSV file gave.
  TwoEpochs Same(const std::string& more, ReaderOptions options) {
    const Job job = RowsJob(more);
    options.seed = job.seed;
    Job of_text = job;
    of_text.data.format = DataFormat::kCsv;
    of_text.data.header = true;
    of_text.data.train = {"rows.csv"};
    const TwoEpochs wanted = Read(of_text, options);
    for (const char* const name : {"rows.parquet", "rows_other_types.parquet"}) {
      SCOPED_TRACE(name);
      Job of_file = job;
      of_file.data.train = {name};
      const TwoEpochs read = Read(of_file, options);
      ExpectSame(read.batches, wanted.batches);
      EXPECT_EQ(read.bad_rows, wanted.bad_rows);
      EXPECT_EQ(read.problem, "");
      EXPECT_EQ(*CountRows(*files_, of_file.data, of_file.data.train, options), kRows);
    }
    return wanted;
  }

  TwoEpochs Read(const Job& job, ReaderOptions options) {
    if (job.data.negatives.per_positive > 0) {
      options.items = std::make_shared<ItemPool>(*files_, job);
    }
    return ReadTwoEpochs(*files_, job.data, options);
  }

  // Returns why the job cannot read these files; empty if it can.
  std::string Problem(const Job& job, std::vector<std::string> paths) {
    Job of_paths = job;
    of_paths.data.train = std::move(paths);
    return Read(of_paths, {.batch_size = 64, .shuffle = false}).problem;
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(ParquetFilesTest, ASourceTellsItsRowGroupsAndGivesBatches) {
  const auto source = ParquetSource::Open(*files_, "rows.parquet");
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ((*source)->group_rows(), (std::vector<uint64_t>{150, 150, 100}));
  EXPECT_EQ((*source)->num_rows(), kRows);
  EXPECT_EQ((*source)->columns()[3].name, "color");
  const auto stream = (*source)->Rows({1, 3}, /*batch_rows=*/64);
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  ASSERT_EQ((*stream)->columns().size(), 2u);
  EXPECT_EQ((*stream)->columns()[1].name, "color");
  uint64_t rows = 0;
  while (true) {
    const auto batch = (*stream)->Next();
    ASSERT_TRUE(batch.ok()) << batch.status().message();
    if (*batch == nullptr) break;
    EXPECT_LE((*batch)->num_rows(), 64u);
    rows += (*batch)->num_rows();
  }
  EXPECT_EQ(rows, kRows);
}

TEST_F(ParquetFilesTest, RowsAreThoseOfATextFile) {
  EXPECT_EQ(Same("", {.batch_size = 64, .shuffle = false}).batches.size(), 14u);
  for (const uint32_t part : {0u, 1u, 2u}) {
    Same("", {.batch_size = 64, .part = part, .num_parts = 3});
  }
  Same("", {.batch_size = 64, .fill_last = true});
  // As many parts as make a reader of text keep an index.
  Same("", {.batch_size = 256, .part = 17, .num_parts = kPartsMany});
  Same(R"(, "item_features": ["color", "tags"], "negatives": {"per_positive": 2})",
       {.batch_size = 64});
}

TEST_F(ParquetFilesTest, ReadingGoesOnInTheMiddle) {
  const Job job = RowsJob();
  auto reader = NewBatchReader(*files_, job.data, job.data.train, {.batch_size = 64});
  ASSERT_TRUE(reader.ok());
  std::vector<Batch> whole = ReadEpoch(**reader, 1);
  whole.erase(whole.begin(), whole.begin() + 3);
  ExpectSame(ReadEpoch(**reader, 1, /*skip_steps=*/3), whole);
}

TEST_F(ParquetFilesTest, KeptRowsAreTheSame) {
  const TwoEpochs wanted = Read(RowsJob(), {.batch_size = 64});
  RowCacheOptions caching;
  caching.memory_max = uint64_t{1} << 24;
  caching.repeats = true;
  const auto caches = std::make_shared<RowCaches>(*files_, caching);
  ExpectSame(Read(RowsJob(), {.batch_size = 64, .cache = caches}).batches, wanted.batches);
}

// Returns the labels and numbers of the examples, in any order.
std::vector<std::vector<float>> Examples(const TwoEpochs& read) {
  std::vector<std::vector<float>> examples;
  for (const Batch& batch : read.batches) {
    for (uint32_t i = 0; i < batch.num_examples; ++i) {
      std::vector<float>& example = examples.emplace_back();
      example.push_back(batch.labels[i]);
      const auto from = batch.numeric.begin() + i * batch.num_numeric;
      example.insert(example.end(), from, from + batch.num_numeric);
    }
  }
  std::ranges::sort(examples);
  return examples;
}

TEST_F(ParquetFilesTest, TheSameRowsAreHeldOutHoweverTheyAreStored) {
  Job job = RowsJob(R"(, "validation_share": 0.3)");
  std::vector<std::vector<std::vector<float>>> held_out;
  for (const char* const name : {"rows.parquet", "rows_other_types.parquet"}) {
    job.data.train = {name};
    held_out.push_back(Examples(Read(job, {.batch_size = 64, .side = RowSide::kHeldOut})));
    const size_t trained =
        Examples(Read(job, {.batch_size = 64, .side = RowSide::kTrained})).size();
    EXPECT_EQ(held_out.back().size() + trained, 2 * kRows);
  }
  EXPECT_EQ(held_out[0], held_out[1]);
  EXPECT_GT(held_out[0].size(), kRows / 3);
}

TEST_F(ParquetFilesTest, ABadRowIsNamedByItsPlace) {
  Job job = RowsJob(R"(, "max_bad_rows": 2)");
  job.data.features.clear();
  job.data.columns[3].type = ColumnType::kNumeric;  // Of the texts of colors, some are missing.
  EXPECT_THAT(Problem(job, {"rows.parquet"}),
              AllOf(StartsWith("rows.parquet:"), HasSubstr("expected a number in column 'color'"),
                    HasSubstr("(bad rows: 3, data.max_bad_rows: 2")));
  job.data.max_bad_rows = static_cast<int64_t>(kRows);
  job.data.train = {"rows.parquet"};
  const TwoEpochs read = Read(job, {.batch_size = 64});
  EXPECT_EQ(read.problem, "");
  EXPECT_GT(read.bad_rows, 400u);
}

TEST_F(ParquetFilesTest, ColumnsThatCannotBeReadAreRefusedByNameAndType) {
  Job job = RowsJob();
  job.data.columns[2].type = ColumnType::kCategorical;
  EXPECT_THAT(Problem(job, {"rows.parquet"}),
              HasSubstr("rows.parquet: column 'age' has the type float64: expected integers or "));
  job.data.columns[2] = RowsJob().data.columns[2];
  job.data.columns[5].type = ColumnType::kCategorical;
  EXPECT_THAT(Problem(job, {"rows.parquet"}), HasSubstr("column 'price' has the type decimal: "));
  job = RowsJob();
  job.data.columns[7].from = "age";
  job.data.columns[7].type = ColumnType::kCategorical;
  EXPECT_THAT(Problem(job, {"rows.parquet"}), HasSubstr("column 'age' has the type float64"));
  job = RowsJob();
  job.data.columns[4].type = ColumnType::kCategorical;
  EXPECT_THAT(Problem(job, {"rows.parquet"}),
              HasSubstr("column 'tags' has the type list of text: expected one value a row"));
  job = RowsJob();
  job.data.features.clear();
  job.data.columns[1].name = "usr";
  job.data.columns[7].from = "usr";
  EXPECT_THAT(Problem(job, {"rows.parquet"}),
              AllOf(HasSubstr("rows.parquet: the file has no column 'usr'"), HasSubstr("user")));
}

TEST_F(ParquetFilesTest, FilesHaveOneSchema) {
  EXPECT_THAT(
      Problem(RowsJob(), {"rows.parquet", "rows_other_types.parquet"}),
      HasSubstr("rows_other_types.parquet: column 'click' has the type int8, and in rows.parquet "
                "it has the type int64: expected files of one schema"));
  EXPECT_EQ(Problem(RowsJob(), {"rows.parquet", "rows.parquet"}), "");
  const Job job = RowsJob();
  EXPECT_THAT(
      PreviewData(*files_, job.data, {"rows.parquet", "rows_other_types.parquet"}, LabelsOf(job))
          .status()
          .message(),
      HasSubstr("expected files of one schema"));
}

TEST_F(ParquetFilesTest, FormatsAreNotMixed) {
  EXPECT_THAT(Problem(RowsJob(), {"rows.parquet", "rows.csv"}),
              HasSubstr("rows.csv: this is no Parquet file: its first bytes are 'clic'"));
  Job text = RowsJob();
  text.data.format = DataFormat::kCsv;
  EXPECT_THAT(Problem(text, {"rows.parquet"}), HasSubstr("rows.parquet: this is a Parquet file"));
}

std::vector<float> FirstNumbers(const TwoEpochs& read, size_t count) {
  std::vector<float> numbers =
      read.batches.empty() ? std::vector<float>() : read.batches[0].numeric;
  numbers.resize(std::min(numbers.size(), count));
  return numbers;
}

TEST_F(ParquetFilesTest, FilesOfOtherWritersAreReadOrRefused) {
  const char* const names[] = {"alltypes_dictionary.parquet",
                               "int32_decimal.parquet",
                               "lz4_raw_compressed.parquet",
                               "nested_lists.snappy.parquet",
                               "rle_boolean_encoding.parquet",
                               "rle-dict-snappy-checksum.parquet",
                               "encrypt_columns_plaintext_footer.parquet.encrypted",
                               "ARROW-RS-GH-6229-LEVELS.parquet"};
  for (const char* const name : names) WriteText(*files_, name, BytesOfRecordFile(name));
  const auto read = [&](const std::string& name, const std::vector<std::string>& columns) {
    Job job = NumbersJob(columns);
    job.data.train = {name};
    return Read(job, {.batch_size = 1024, .shuffle = false});
  };
  // The values are those that pyarrow reads.
  EXPECT_EQ(FirstNumbers(read("alltypes_dictionary.parquet", {"id", "double_col"}), 4),
            (std::vector<float>{0, 0, 1, 10.1f}));
  EXPECT_EQ(FirstNumbers(read("int32_decimal.parquet", {"value"}), 3),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(FirstNumbers(read("lz4_raw_compressed.parquet", {"v11"}), 2),
            (std::vector<float>{42, 7.7f}));
  EXPECT_EQ(read("rle_boolean_encoding.parquet", {"datatype_boolean"}).batches[0].num_examples,
            68u);
  EXPECT_EQ(read("rle-dict-snappy-checksum.parquet", {"long_field"}).batches[0].num_examples,
            1000u);
  EXPECT_THAT(read("nested_lists.snappy.parquet", {"a"}).problem,
              HasSubstr("column 'a' has the type list of list inside of another type: expected "));
  EXPECT_THAT(read("alltypes_dictionary.parquet", {"timestamp_col"}).problem,
              HasSubstr("column 'timestamp_col' has the type timestamp: expected integers"));
  EXPECT_THAT(read("encrypt_columns_plaintext_footer.parquet.encrypted", {"float_field"}).problem,
              HasSubstr("is encrypted"));
  EXPECT_THAT(read("ARROW-RS-GH-6229-LEVELS.parquet", {"outer"}).problem,
              HasSubstr("column 'outer' has the type list of struct: expected integers"));
}

}  // namespace
}  // namespace hdps
