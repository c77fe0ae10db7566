// Tests exports in memory: the merge of runs against a map, files that say wrong things of
// themselves, and a run that begins from an export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/export/export.h"
#include "tools/export/first_checkpoint.h"
#include "tools/export/key_runs.h"
#include "tools/export/safetensors_reader.h"
#include "tools/export/safetensors_writer.h"
#include "tools/export/trained_tables.h"
#include "tools/export/wanted_rows.h"
#include "tools/local_cluster.h"
#include "tools/scoring/checkpoint_model.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

// ---- Merging runs.

TEST(KeyRuns, MergesAsAMapDoes) {
  constexpr uint32_t kDim = 3, kRuns = 7;
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  KeyRuns runs(*files, "rows", kDim);
  std::vector<std::map<Key, std::vector<float>>> of_run(kRuns);
  std::map<Key, std::vector<float>> all;
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const Key key = random.Next();
    all[key] = {static_cast<float>(i), 1, 2};
    of_run[key % (kRuns - 1)][key] = all[key];  // The last run is empty.
  }
  for (const auto& rows : of_run) {
    ASSERT_TRUE(runs.BeginRun(0, kDim).ok());
    for (const auto& [key, row] : rows) {
      std::vector<float> with_state = row;
      with_state.push_back(-1);
      ASSERT_TRUE(runs.Append(std::span(&key, 1), with_state, kDim + 1).ok());
    }
  }
  ASSERT_TRUE(runs.Finish().ok());
  EXPECT_EQ(runs.num_rows(), all.size());
  auto expected = all.begin();
  ASSERT_TRUE(runs.VisitRows([&](std::span<const Key> keys, std::span<const float> rows) {
                    for (size_t k = 0; k < keys.size(); ++k, ++expected) {
                      EXPECT_EQ(keys[k], expected->first);
                      EXPECT_TRUE(
                          std::ranges::equal(rows.subspan(k * kDim, kDim), expected->second));
                    }
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(expected, all.end());
}

TEST(KeyRuns, PutsColumnsOfARowTogether) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  KeyRuns runs(*files, "rows", 3);
  const std::vector<Key> left = {1, ~Key{0}}, right = {1, 5};
  ASSERT_TRUE(runs.BeginRun(0, 2).ok());
  ASSERT_TRUE(runs.Append(left, std::vector<float>{1, 2, 3, 4}, 2).ok());
  ASSERT_TRUE(runs.BeginRun(2, 1).ok());
  ASSERT_TRUE(runs.Append(right, std::vector<float>{7, 8}, 1).ok());
  ASSERT_TRUE(runs.Finish().ok());
  EXPECT_EQ(runs.num_rows(), 3u);
  ASSERT_TRUE(runs.VisitRows([](std::span<const Key> keys, std::span<const float> rows) {
                    EXPECT_THAT(keys, ::testing::ElementsAre(1, 5, ~Key{0}));
                    EXPECT_THAT(rows, ::testing::ElementsAre(1, 2, 7, 0, 0, 8, 3, 4, 0));
                    return Status();
                  })
                  .ok());
}

// ---- Files of tensors.

TEST(Safetensors, ComesBackAsItWasWritten) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::vector<uint64_t> keys = {1, 2, 3};
  const std::vector<float> weights = {1.5f, -2.0f};
  ASSERT_TRUE(
      WriteSafetensors(*files, "f", {{"k", "I64", {3}}, {"w", "F32", {1, 2}}, {"e", "F32", {0, 4}}},
                       {std::as_bytes(std::span(keys)), std::as_bytes(std::span(weights)), {}},
                       {{"a", "text"}})
          .ok());
  const Result<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::Open(*files, "f");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ((*file)->entries().size(), 3u);
  EXPECT_EQ((*file)->entries()[0].begin % 8, 0u);
  for (const SafetensorsFile::Entry& entry : (*file)->entries()) {
    if (entry.tensor.name != "w") continue;
    std::vector<float> read(2);
    ASSERT_TRUE((*file)->Read(entry, 0, std::as_writable_bytes(std::span(read))).ok());
    EXPECT_EQ(read, weights);
  }
}

// A file with this header and so many bytes of data.
std::string FileOf(const std::string& header, size_t data, uint64_t more_length = 0) {
  const uint64_t length = header.size() + more_length;
  std::string bytes(sizeof(length), ' ');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + std::string(data, 'x');
}

TEST(Safetensors, RefusesWhatIsWrong) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::string one = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "0 bytes"},
      {"1234567", "7 bytes"},
      {FileOf("{" + one + "}", 8, 1000), "its header says"},
      {FileOf("{" + one + "}", 8, ~uint64_t{0} >> 1), "its header says"},
      {FileOf("[" + one, 8), "JSON"},
      {FileOf("[]", 0), "JSON"},
      {FileOf(std::string(100000, '['), 8), "JSON"},
      {FileOf("{" + one + "," + one + "}", 8), "each name once"},
      {FileOf("{" + one + "}", 7), "ends behind the file"},
      {FileOf("{" + one + "}", 9), "1 bytes behind"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
       "begins at byte 4"},
      {FileOf("{" + one + R"(,"b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})", 12),
       "begins at byte 4"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "no tensor"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "no tensor"},
      {FileOf(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8), "no tensor"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "no tensor"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8), "no tensor"},
      {FileOf(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8), "no tensor"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}})", 8),
       "no tensor"},
      {FileOf(R"({"a":8})", 8), "no tensor"}};
  for (const auto& [bytes, why] : wrong) {
    WriteText(*files, "f", bytes);
    const auto file = SafetensorsFile::Open(*files, "f");
    ASSERT_FALSE(file.ok()) << why;
    EXPECT_EQ(file.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr(why));
  }
  WriteText(*files, "f", FileOf("{" + one + "}  ", 8));
  EXPECT_TRUE(SafetensorsFile::Open(*files, "f").ok()) << "padding is no mistake";
}

// ---- Whole exports.

constexpr char kData[] =
    R"("train": ["t"], "eval": ["t"], "columns": [{"name": "y", "type": "label"},
    {"name": "a"}, {"name": "b", "type": "multi"}, {"name": "n", "type": "numeric"}])";

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string rows;
    for (int i = 0; i < 200; ++i) {
      rows += std::to_string(i % 2) + ",a" + std::to_string(i % 31) + ",b" + std::to_string(i % 7) +
              "|b" + std::to_string(i % 3) + "," + std::to_string(i % 5) + "\n";
    }
    WriteText(*files_, "t", rows);
  }
  Job JobOf(const std::string& more_model = "", const std::string& more = "") {
    Result<Job> job =
        ParseJob(std::string(R"({"name": "small", "seed": 3, "data": {)") + kData +
                     R"(}, "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8],
            "device": "cpu")" +
                     more_model + R"(}, "train": {"batch_size": 8, "epochs": 2},
            "cluster": {"shards": 4, "heartbeat_ms": 50})" +
                     more + "}",
                 "job.json", {});
    EXPECT_TRUE(job.ok()) << job.status().message();
    return *job;
  }
  void Train(const Job& job, const std::string& out) {
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(job);
    options.out = out;
    options.threads = 1;
    const Result<ProcessEnd> end = RunLocalCluster(options, *files_, *clock_);
    ASSERT_TRUE(end.ok()) << end.status().message();
    ASSERT_EQ(end->status, 0) << end->reason;
  }
  Status Export(const std::string& run, const std::string& out) {
    ExportRequest request;
    request.common.checkpoint = run;
    request.common.out = out;
    request.format = "safetensors";
    return RunExport(request, *files_, *executor_, said_);
  }
  // Checks that the rows exported from `run` are those of its checkpoint, and all of them.
  void ExpectRowsOf(const Job& job, const std::string& run, const std::string& out) {
    const auto model = CheckpointModel::Load(*files_, job, run, WhichCheckpoint::kBest, *executor_);
    ASSERT_TRUE(model.ok()) << model.status().message();
    Result<TrainedTensors> tensors = TrainedTensors::Open(*files_, out);
    ASSERT_TRUE(tensors.ok()) << tensors.status().message();
    const std::vector<uint64_t> counts = (*model)->RowsOfTables();
    for (uint32_t t = 0; t + 1 < job.tables.size(); ++t) {
      const TableSpec& spec = (*model)->job().tables[t];
      const auto* const keys = tensors->Use(spec.name + ".keys");
      const auto* const weights = tensors->Use(spec.name + ".weights");
      ASSERT_TRUE(keys != nullptr && weights != nullptr);
      const uint64_t rows = keys->of().shape[0];
      EXPECT_EQ(rows * spec.row_slices(), counts[t]);
      std::vector<Key> read(rows);
      ASSERT_TRUE(keys->file->Read(*keys->entry, 0, std::as_writable_bytes(std::span(read))).ok());
      EXPECT_TRUE(std::ranges::is_sorted(read));
      std::vector<float> got(rows * spec.dim), expected(rows * spec.dim);
      ASSERT_TRUE(weights->ReadFloats(0, got).ok());
      (*model)->Read({t}, read, {}, expected);
      EXPECT_EQ(got, expected);
    }
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
  std::ostringstream said_;
};

TEST_F(ExportTest, HasAllRowsOfAChainOfChanges) {
  const Job job = JobOf("", R"(, "checkpoint": {"every_steps": 20, "delta_every_steps": 5})");
  Train(job, "run");
  const Status status = Export("run", "model");
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectRowsOf(job, "run", "model");
  EXPECT_FALSE(files_->Exists("model.tmp"));
  EXPECT_FALSE(files_->Exists("model/rows"));
  EXPECT_THAT(Export("run", "model").message(), HasSubstr("--out=model exists"));
}

TEST_F(ExportTest, HasWholeRowsOfATableCutByColumn) {
  const Job job = JobOf(R"(, "slice_mode": "table_column_slice", "column_slices": 2)");
  Train(job, "run");
  const Status status = Export("run", "model");
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectRowsOf(job, "run", "model");
  // And back: the same weights as rows of two columns.
  std::ostringstream lines;
  const auto begun = std::make_shared<const Job>(job);
  ASSERT_TRUE(WriteFirstCheckpoint(*files_, begun, "model", "begun", *executor_, lines).ok());
  EXPECT_THAT(lines.str(), HasSubstr("taken"));
  EXPECT_THAT(lines.str(), ::testing::Not(HasSubstr("anew")));
  ExpectRowsOf(job, "begun", "model");
  EXPECT_TRUE(HasCheckpoint(*files_, "begun"));
}

TEST_F(ExportTest, DrawsValuesWithoutData) {
  const Job job = JobOf();
  Train(job, "run");
  ASSERT_TRUE(files_->RemoveAll("t").ok());
  const Status status = Export("run", "model");
  ASSERT_TRUE(status.ok()) << status.message();
  const auto check = SafetensorsFile::Open(*files_, "model/check.safetensors");
  ASSERT_TRUE(check.ok()) << check.status().message();
  for (const SafetensorsFile::Entry& entry : (*check)->entries()) {
    EXPECT_EQ(entry.tensor.shape[0], 1000u) << entry.tensor.name;
  }
}

TEST_F(ExportTest, TakesThePlaceOfWhatAKilledOneLeft) {
  Train(JobOf(), "run");
  ASSERT_TRUE(files_->MakeDirectories("model.tmp").ok());
  WriteText(*files_, "model.tmp/left", "by a killed export");
  const Status status = Export("run", "model");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(files_->Exists("model/left"));
}

TEST_F(ExportTest, NothingThatFitsIsAMistake) {
  const auto job = std::make_shared<const Job>(JobOf());
  ASSERT_TRUE(files_->MakeDirectories("init").ok());
  const std::vector<float> numbers(8);
  ASSERT_TRUE(WriteSafetensors(*files_, "init/a.safetensors", {{"deep.weights", "F32", {2, 4}}},
                               {std::as_bytes(std::span(numbers))}, {})
                  .ok());
  std::ostringstream lines;
  const Status status = WriteFirstCheckpoint(*files_, job, "init", "begun", *executor_, lines);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("nothing of it fits"));
  EXPECT_THAT(lines.str(), HasSubstr("no tensor deep.keys"));
  EXPECT_FALSE(HasCheckpoint(*files_, "begun"));
}

TEST_F(ExportTest, RowsThatDoNotFitTheirKeysAreAMistake) {
  const auto job = std::make_shared<const Job>(JobOf());
  ASSERT_TRUE(files_->MakeDirectories("init").ok());
  std::vector<float> numbers(8);
  const std::vector<Key> keys = {1, 2, 3};
  const auto begin = [&](uint64_t count) {
    EXPECT_TRUE(
        WriteSafetensors(
            *files_, "init/a.safetensors",
            {{"deep.keys", "I64", {count}}, {"deep.weights", "F32", {2, 4}}},
            {std::as_bytes(std::span(keys).first(count)), std::as_bytes(std::span(numbers))}, {})
            .ok());
    std::ostringstream lines;
    return WriteFirstCheckpoint(*files_, job, "init", "begun", *executor_, lines);
  };
  EXPECT_THAT(begin(3).message(), HasSubstr("expected I64 [2], a key for each row"));
  std::vector<Key> twice = {7, 7};
  ASSERT_TRUE(WriteSafetensors(*files_, "init/a.safetensors",
                               {{"deep.keys", "I64", {2}}, {"deep.weights", "F32", {2, 4}}},
                               {std::as_bytes(std::span(twice)), std::as_bytes(std::span(numbers))},
                               {})
                  .ok());
  std::ostringstream lines;
  ASSERT_TRUE(WriteFirstCheckpoint(*files_, job, "init", "twice", *executor_, lines).ok());
  EXPECT_THAT(lines.str(), HasSubstr("the last of the rows, instead of 1 others"));
  numbers[5] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(begin(2).message(), HasSubstr("row 1 of tensor \"deep.weights\""));
  EXPECT_FALSE(HasCheckpoint(*files_, "begun"));
}

// Texts are read in pieces, and one may be longer than several of these. Of two rows of a key the
// later counts, here that of the value.
TEST_F(ExportTest, RowsByValueFollowThoseByKey) {
  const auto job = std::make_shared<const Job>(
      JobOf(R"(, "slice_mode": "table_column_slice", "column_slices": 2)"));
  ASSERT_TRUE(files_->MakeDirectories("init").ok());
  const std::string longest(size_t{5} << 19, 'l');
  const std::string texts = "x\n" + longest + "\ny\n";
  const auto key_of = [](const std::string& value) { return FeatureKey(HashString("a"), value); };
  const std::vector<Key> keys = {7, key_of("y")};
  const std::vector<float> by_key = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> by_value = {11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34};
  const auto begin = [&](const std::string& of_values, const std::string& out,
                         std::ostringstream& lines) {
    EXPECT_TRUE(
        WriteSafetensors(*files_, "init/a.safetensors",
                         {{"deep.keys", "I64", {2}},
                          {"deep.weights", "F32", {2, 4}},
                          {"deep.a.values", "U8", {of_values.size()}},
                          {"deep.a.weights", "F32", {3, 4}}},
                         {std::as_bytes(std::span(keys)), std::as_bytes(std::span(by_key)),
                          std::as_bytes(std::span(of_values)), std::as_bytes(std::span(by_value))},
                         {})
            .ok());
    return WriteFirstCheckpoint(*files_, job, "init", out, *executor_, lines);
  };
  std::ostringstream lines;
  const Status status = begin(texts, "begun", lines);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(lines.str(), HasSubstr("F32 [2, 4]  taken\n"));
  EXPECT_THAT(lines.str(), HasSubstr("F32 [3, 4]  taken; of keys that come again the last of the "
                                     "rows, instead of 1 others\n"));
  EXPECT_FALSE(files_->Exists("begun/checkpoint/step_0000000000/rows"));
  const auto model =
      CheckpointModel::Load(*files_, *job, "begun", WhichCheckpoint::kNewest, *executor_);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<Key> read = {7, key_of("x"), key_of(longest), key_of("y")};
  std::vector<float> got(16), expected(by_key.begin(), by_key.begin() + 4);
  expected.insert(expected.end(), by_value.begin(), by_value.end());
  (*model)->Read({1}, read, {}, got);
  EXPECT_EQ(got, expected);
  for (const std::string& wrong : {texts + "z\n", texts.substr(0, texts.size() - 1)}) {
    EXPECT_THAT(begin(wrong, "wrong", lines).message(),
                HasSubstr("expected U8, the texts of 3 values, each ended by a newline"));
    EXPECT_FALSE(HasCheckpoint(*files_, "wrong"));
  }
}

}  // namespace
}  // namespace hdps
