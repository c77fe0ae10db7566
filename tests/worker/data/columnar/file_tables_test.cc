// Tests that files read as tables give the batches that readers of files give.
#include "worker/data/columnar/file_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/table_rows.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

DataSpec DataOf(const std::string& data) {
  const Result<Job> job = ParseJob(R"({"name": "j", "data": {"train": ["t"], )" + data +
                                       R"(}, "model": {"type": "logistic", "device": "cpu"}})",
                                   "job.json", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job->data;
}

class FileTablesTest : public ::testing::Test {
 protected:
  void SetUp() override { options_.shuffle = false; }

  // All rows, in tables of at most `rows_max`, as a reader of columns sees them.
  Batch AsTables(const DataSpec& data, const std::vector<std::string>& paths, uint64_t rows_max) {
    auto tables = FileTables::Open(*files_, data, paths, options_);
    EXPECT_TRUE(tables.ok()) << tables.status().message();
    Batch all;
    while (true) {
      const auto table = (*tables)->Next(rows_max);
      EXPECT_TRUE(table.ok()) << table.status().message();
      if (!table.ok() || *table == nullptr) return all;
      EXPECT_LE((*table)->num_rows(), rows_max);
      auto rows = TableRows::Make(data, *table, "the table");
      EXPECT_TRUE(rows.ok()) << rows.status().message();
      const auto batch = (*rows)->Read(0, (*table)->num_rows());
      EXPECT_TRUE(batch.ok()) << batch.status().message();
      Append(*batch, &all);
    }
  }
  Batch AsFiles(const DataSpec& data, const std::vector<std::string>& paths) {
    auto reader = NewBatchReader(*files_, data, paths, options_);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    Batch all;
    for (const Batch& batch : ReadEpoch(**reader)) Append(batch, &all);
    return all;
  }
  static void Append(const Batch& batch, Batch* all) {
    all->num_examples += batch.num_examples;
    all->numeric.insert(all->numeric.end(), batch.numeric.begin(), batch.numeric.end());
    all->sparse.resize(batch.sparse.size());
    for (size_t f = 0; f < batch.sparse.size(); ++f) {
      const std::vector<Key>& keys = batch.sparse[f].keys;
      all->sparse[f].keys.insert(all->sparse[f].keys.end(), keys.begin(), keys.end());
    }
  }
  void ExpectSame(const DataSpec& data, const std::vector<std::string>& paths) {
    const Batch files = AsFiles(data, paths);
    EXPECT_GT(files.num_examples, 3u);
    for (const uint64_t rows_max : {1, 3, 1000}) {
      const Batch tables = AsTables(data, paths, rows_max);
      EXPECT_EQ(tables.num_examples, files.num_examples);
      EXPECT_EQ(tables.numeric, files.numeric);
      ASSERT_EQ(tables.sparse.size(), files.sparse.size());
      for (size_t f = 0; f < files.sparse.size(); ++f) {
        EXPECT_EQ(tables.sparse[f].keys, files.sparse[f].keys);
      }
    }
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  ReaderOptions options_;
};

TEST_F(FileTablesTest, HaveTheColumnsOfEachHeader) {
  const DataSpec data = DataOf(
      R"("header": true, "decimal": ",", "delimiter": ";", "missing": "NA", "comment": "#",
         "columns": [{"name": "y", "type": "label"}, {"name": "user"},
         {"name": "age", "type": "numeric"}, {"name": "tags", "type": "multi"},
         {"name": "u2", "from": "user"}])");
  WriteText(*files_, "a", "y;user;age;tags\n1;u1;1,5;a|b\n# nothing\n0;NA;NA;\n0;\"u;2\";-3;b\n");
  WriteText(*files_, "b", "tags;more;age;user;y\nc;x;0,25;u7;1\n");
  ExpectSame(data, {"a", "b"});
}

TEST_F(FileTablesTest, HaveTheCellsOfFilesWithoutNames) {
  WriteText(*files_, "rows", NumberedText(0, 10));
  ExpectSame(NumberedRows(), {"rows"});
  std::string criteo;
  for (int i = 0; i < 5; ++i) {
    criteo += "1";
    for (int n = 0; n < 13; ++n) criteo += "\t" + (n % 4 == i % 4 ? "" : std::to_string(n * i));
    for (int c = 0; c < 26; ++c) criteo += "\tc" + std::to_string(c * i);
    criteo += "\n";
  }
  WriteText(*files_, "criteo", criteo);
  auto tables = FileTables::Open(*files_, DataOf(R"("format": "criteo")"), {"criteo"}, options_);
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  const auto table = *(*tables)->Next(3);
  ASSERT_EQ(table->num_rows(), 3u);
  ASSERT_EQ(table->columns().size(), 40u);
  EXPECT_EQ(table->columns()[1].name, "I1");
  EXPECT_EQ(table->columns()[39].name, "C26");
  EXPECT_EQ((*(*tables)->Next(3))->num_rows(), 2u);
}

TEST_F(FileTablesTest, HaveTheRowsOfOneSide) {
  DataSpec data = NumberedRows();
  data.validation_share = 0.3;
  WriteText(*files_, "rows", NumberedText(0, 100));
  options_.side = RowSide::kHeldOut;
  ExpectSame(data, {"rows"});
  const uint32_t held_out = AsFiles(data, {"rows"}).num_examples;
  EXPECT_LT(held_out, 60u);
}

TEST_F(FileTablesTest, AreLinesOfFormatsWithoutColumns) {
  WriteText(*files_, "rows", "1 1:1 7:0.5\r\n0 3:1\n");
  auto tables = FileTables::Open(*files_, DataOf(R"("format": "libsvm")"), {"rows"}, options_);
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  const auto table = *(*tables)->Next(10);
  ASSERT_EQ(table->columns().size(), 1u);
  EXPECT_EQ(table->columns()[0].name, "row");
  std::string_view line;
  CellText memory;
  ASSERT_TRUE(CellReader(table->columns()[0].type).Text(table->chunk(0, 0), 0, &memory, &line));
  EXPECT_EQ(line, "1 1:1 7:0.5");
  DataSpec idx;
  idx.format = DataFormat::kIdx;
  const auto images = FileTables::Open(*files_, idx, {"rows"}, options_);
  EXPECT_THAT(images.status().message(), HasSubstr("a line for each row"));
}

}  // namespace
}  // namespace hdps
