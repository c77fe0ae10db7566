// Tests which rows are kept where, and what is passed over, said and made again.
#include "worker/data/cache/row_caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "tests/worker/data/cache/cached_streams.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/cache/stream_stamp.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "f";

class RowCachesTest : public ::testing::Test {
 protected:
  RowCachesTest() {
    data_.shuffle_rows = 40;
    WriteText(files_, kPath, NumberedText(0, 300));
  }

  // Begins a process with this cache.
  void Begin(const RowCacheOptions& options) {
    options_.cache = std::make_shared<RowCaches>(files_, options);
  }
  // Reads an epoch and compares it with that of the text. Returns true if it was read as text.
  bool ReadsText(uint32_t epoch = 0) {
    ReaderOptions of_text = options_;
    of_text.cache = nullptr;
    const EpochRead wanted = Read(of_text, epoch);
    const int before = files_.texts_opened;
    ExpectSame(Read(options_, epoch), wanted);
    return files_.texts_opened > before;
  }
  EpochRead Read(const ReaderOptions& options, uint32_t epoch) {
    auto reader = NewBatchReader(files_, data_, {kPath}, options);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    return ReadOneEpoch(**reader, epoch);
  }
  StreamStamp Stamp() {
    return *StampOfStream(files_, data_, {kPath}, options_, CachedForm::kDerived);
  }
  std::string FileOfRows() { return JoinPath("kept", Stamp().name); }

  CountedFiles files_;
  DataSpec data_ = NumberedRows();
  ReaderOptions options_{.batch_size = 64};
};

TEST_F(RowCachesTest, AutoKeepsInMemoryWhatFits) {
  Begin(MuchMemory("kept"));
  EXPECT_TRUE(ReadsText(0));
  EXPECT_FALSE(ReadsText(1));
  EXPECT_FALSE(files_.Exists(FileOfRows()));
}

TEST_F(RowCachesTest, AutoKeepsOnDiskWhatDoesNotFit) {
  RowCacheOptions little = MuchMemory("kept");
  little.memory_max = uint64_t{2} << 20;  // For the index, but no block.
  Begin(little);
  EXPECT_TRUE(ReadsText(0));
  EXPECT_FALSE(ReadsText(1));
  EXPECT_TRUE(files_.Exists(FileOfRows()));
}

TEST_F(RowCachesTest, AutoKeepsNothingThatIsReadOnce) {
  RowCacheOptions once = MuchMemory("kept");
  once.repeats = false;
  Begin(once);
  EXPECT_TRUE(ReadsText(0));
  EXPECT_TRUE(ReadsText(0));
  // But it finds what others have kept.
  Begin(OnDisk());
  EXPECT_TRUE(ReadsText(0));
  Begin(once);
  EXPECT_FALSE(ReadsText(0));
}

TEST_F(RowCachesTest, NoneReadsText) {
  Begin(OnDisk());
  EXPECT_TRUE(ReadsText(0));
  Begin({.cache = DataCache::kNone, .folder = "kept"});
  EXPECT_TRUE(ReadsText(1));
}

TEST_F(RowCachesTest, MemoryThatIsShortMeansText) {
  RowCacheOptions little = MuchMemory("kept");
  little.cache = DataCache::kMemory;
  little.memory_max = 1000;
  Begin(little);
  EXPECT_TRUE(ReadsText(0));
  EXPECT_TRUE(ReadsText(1));
  EXPECT_FALSE(files_.Exists(FileOfRows()));
}

TEST_F(RowCachesTest, AnotherProcessReadsTheFile) {
  Begin(OnDisk());
  EXPECT_TRUE(ReadsText(0));
  Begin(OnDisk());
  EXPECT_FALSE(ReadsText(0));
  // Jobs that differ in other things only have the same rows.
  data_.shuffle_rows = 7;
  data_.max_bad_rows = 3;
  options_.seed = 9;
  options_.batch_size = 17;
  EXPECT_FALSE(ReadsText(2));
}

TEST_F(RowCachesTest, WorkersInProcessesOfTheirOwnNeedAFolder) {
  RowCacheOptions apart = MuchMemory();
  apart.all_workers = false;
  options_.num_parts = 3;
  Begin(apart);
  EXPECT_TRUE(ReadsText(0));
  EXPECT_TRUE(ReadsText(1)) << "each would have to parse the rows of all";
  apart.folder = "kept";
  Begin(apart);
  EXPECT_TRUE(ReadsText(0));
  Begin(apart);
  options_.part = 2;
  EXPECT_FALSE(ReadsText(1));
}

TEST_F(RowCachesTest, OtherSettingsAreOtherRows) {
  Begin(OnDisk());
  EXPECT_TRUE(ReadsText(0));
  data_.columns[1].transform = Transform::kLog1p;
  Begin(OnDisk());
  EXPECT_TRUE(ReadsText(0));
  EXPECT_FALSE(ReadsText(1)) << "it was made again";
  options_.num_classes = 3;
  EXPECT_TRUE(ReadsText(1));
  EXPECT_FALSE(ReadsText(2));
}

TEST_F(RowCachesTest, FilesThatChangedAreReadAgain) {
  for (const RowCacheOptions& caching : {MuchMemory(), OnDisk()}) {
    WriteText(files_, kPath, NumberedText(0, 300));
    Begin(caching);
    EXPECT_TRUE(ReadsText(0));
    EXPECT_FALSE(ReadsText(1));
    WriteText(files_, kPath, NumberedText(1, 301));  // As long as before.
    EXPECT_TRUE(ReadsText(1));
    EXPECT_FALSE(ReadsText(2));
    WriteText(files_, kPath, NumberedText(0, 299));
    Begin(caching);
    EXPECT_TRUE(ReadsText(2));
    EXPECT_FALSE(ReadsText(3));
  }
}

TEST_F(RowCachesTest, ADifferenceIsNamed) {
  const StreamStamp before = Stamp();
  WriteText(files_, kPath, NumberedText(0, 10));
  EXPECT_THAT(WhatDiffers(before.text, Stamp().text), HasSubstr("f has changed since"));
  const StreamStamp changed = Stamp();
  EXPECT_EQ(changed.name, before.name) << "its file takes the place of the old one";
  data_.missing = "-";
  EXPECT_EQ(WhatDiffers(changed.text, Stamp().text), "the settings of the data are others now");
  EXPECT_EQ(Stamp().name, before.name);
}

TEST_F(RowCachesTest, AFileThatIsChangedWhileItIsReadIsNotKept) {
  Begin(OnDisk());
  auto reader = NewBatchReader(files_, data_, {kPath}, options_);
  ASSERT_TRUE((*reader)->StartEpoch(0, 0).ok());
  ASSERT_TRUE((*reader)->Next().ok());
  WriteText(files_, kPath, NumberedText(7, 300));
  while (true) {
    const auto batch = (*reader)->Next();
    ASSERT_TRUE(batch.ok());
    if (!batch->has_value()) break;
  }
  EXPECT_FALSE(files_.Exists(FileOfRows()));
  EXPECT_TRUE(ReadsText(1));
  EXPECT_FALSE(ReadsText(2));
}

TEST_F(RowCachesTest, AnEpochThatEndsEarlyKeepsNothing) {
  Begin(OnDisk());
  {
    auto reader = NewBatchReader(files_, data_, {kPath}, options_);
    ASSERT_TRUE((*reader)->StartEpoch(0, 0).ok());
    ASSERT_TRUE((*reader)->Next().ok());
  }
  EXPECT_EQ(files_.List("kept")->size(), 0u) << "neither a part of a file nor a lock";
  EXPECT_TRUE(ReadsText(0));
  EXPECT_FALSE(ReadsText(1));
}

TEST_F(RowCachesTest, ADamagedFileIsPassedOverAndMadeAgain) {
  Begin(OnDisk());
  EXPECT_TRUE(ReadsText(0));
  const std::string whole = *ReadWholeFile(files_, FileOfRows(), uint64_t{1} << 30);
  for (const size_t size : {size_t{0}, size_t{100}, whole.size() - 1}) {
    WriteText(files_, FileOfRows(), whole.substr(0, size));
    Begin(OnDisk());
    EXPECT_TRUE(ReadsText(0));
    EXPECT_FALSE(ReadsText(1));
    EXPECT_EQ(*ReadWholeFile(files_, FileOfRows(), uint64_t{1} << 30), whole);
  }
}

// The rows lie in several pieces, so that damage is met in the middle of an epoch.
TEST_F(RowCachesTest, DamageInTheMiddleOfAnEpochGoesOnAsText) {
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text += (i % 100 == 99 ? "no row\n" : "0," + std::to_string(i) + ",");
    if (i % 100 == 99) continue;
    for (int v = 0; v < 180; ++v) text += "c" + std::to_string(v) + (v < 179 ? "|" : "\n");
  }
  WriteText(files_, kPath, text);
  data_.columns[2].type = ColumnType::kMulti;
  data_.max_bad_rows = 100;
  for (const bool shuffle : {true, false}) {
    options_.shuffle = shuffle;
    Begin(OnDisk());
    EXPECT_TRUE(ReadsText(0));
    std::string rows = *ReadWholeFile(files_, FileOfRows(), uint64_t{1} << 30);
    ASSERT_GT(rows.size(), 2 * kRowBlockBytes);
    rows[kRowBlockBytes + 500] ^= 1;
    WriteText(files_, FileOfRows(), rows);
    Begin(OnDisk());
    EXPECT_TRUE(ReadsText(1)) << "from the damage on";
    EXPECT_TRUE(ReadsText(2)) << "and it is made again";
    EXPECT_FALSE(ReadsText(3));
    ASSERT_TRUE(files_.RemoveAll(FileOfRows()).ok());
  }
}

// A plan foresees the bytes of kept rows before a run.
TEST_F(RowCachesTest, TheBytesOfKeptRowsAreForeseen) {
  for (const char* more : {"", R"(, "columns": [{"name": "y", "type": "label"}, {"name": "id",
      "type": "numeric"}, {"name": "color"}, {"name": "w", "type": "weight"}])"}) {
    const std::string format = *more == '\0' ? "criteo" : "csv";
    const auto job = ParseJob(R"({"data": {"train": ["f"], "max_bad_rows": 0, "format": ")" +
                                  format + "\"" + more + R"(}, "model": {"type": "logistic"}})",
                              "test", {});
    ASSERT_TRUE(job.ok()) << job.status().message();
    std::string text;
    for (int i = 0; i < 100; ++i) {
      text += *more == '\0' ? "1" + std::string(39, '\t') + "\n" : "1,5,red,2\n";
    }
    WriteText(files_, kPath, text);
    data_ = job->data;
    Begin(MuchMemory());
    EXPECT_TRUE(ReadsText(0));
    EXPECT_FALSE(ReadsText(1));
    EXPECT_EQ(options_.cache->Find(Stamp())->bytes(), 100 * KeptRowBytes(*job)) << format;
  }
}

TEST_F(RowCachesTest, RowsInMemoryAreForeseen) {
  Job job;
  job.train.epochs = 1;
  EXPECT_FALSE(KeepsRowsInMemory(job, /*one_process=*/true)) << "they are read once";
  job.train.epochs = 2;
  EXPECT_TRUE(KeepsRowsInMemory(job, /*one_process=*/true));
  EXPECT_FALSE(KeepsRowsInMemory(job, /*one_process=*/false)) << "a file is for all processes";
  job.data.cache = DataCache::kMemory;
  EXPECT_TRUE(KeepsRowsInMemory(job, /*one_process=*/false));
  for (const DataCache nowhere : {DataCache::kDisk, DataCache::kNone}) {
    job.data.cache = nowhere;
    EXPECT_FALSE(KeepsRowsInMemory(job, /*one_process=*/true));
  }
}

}  // namespace
}  // namespace hdps
