// Tests that an epoch of kept rows is the epoch of their text, to the bit.
#include "worker/data/cache/cached_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tests/worker/data/cache/cached_streams.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/item_pool.h"

namespace hdps {
namespace {

constexpr char kPath[] = "f";

std::unique_ptr<BatchReader> NewReader(FileSystem& files, const DataSpec& data,
                                       const ReaderOptions& options,
                                       const std::string& path = kPath) {
  auto reader = NewBatchReader(files, data, {path}, options);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return *std::move(reader);
}

// Reads three epochs by part, each by new readers, as text and with `caching`; the second and the
// third begin with no file of text opened.
void CompareEpochs(CountedFiles& files, const DataSpec& data, const ReaderOptions& options,
                   const RowCacheOptions& caching) {
  ReaderOptions kept = options;
  kept.cache = std::make_shared<RowCaches>(files, caching);
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    for (uint32_t part = 0; part < options.num_parts; ++part) {
      SCOPED_TRACE("epoch " + std::to_string(epoch) + ", part " + std::to_string(part));
      ReaderOptions of_text = options;
      of_text.part = kept.part = part;
      const EpochRead wanted = ReadOneEpoch(*NewReader(files, data, of_text), epoch);
      const int before = files.texts_opened;
      const auto reader = NewReader(files, data, kept);
      ExpectSame(ReadOneEpoch(*reader, epoch), wanted);
      const bool is_kept = epoch > 0 || part > 0;
      EXPECT_EQ(files.texts_opened > before, !is_kept);
    }
  }
}

TEST(CachedReaderTest, EveryFormatHasTheSameEpochs) {
  for (const FormatCase& format : FormatCases()) {
    for (const RowCacheOptions& caching : {MuchMemory(), OnDisk()}) {
      for (const uint32_t parts : {1u, 3u, kPartsMany}) {
        for (const bool shuffle : {true, false}) {
          SCOPED_TRACE(format.name + (caching.folder.empty() ? ", memory, " : ", disk, ") +
                       std::to_string(parts) + " parts" + (shuffle ? ", shuffled" : ""));
          CountedFiles files;
          WriteText(files, kPath, format.text);
          const ReaderOptions options{.seed = 5,
                                      .batch_size = 64,
                                      .num_parts = parts,
                                      .shuffle = shuffle,
                                      .labels = format.labels};
          if (parts < kPartsMany) {
            CompareEpochs(files, format.data, options, caching);
            continue;
          }
          // So many parts find what one has made.
          ReaderOptions one = options;
          one.num_parts = 1;
          one.cache = std::make_shared<RowCaches>(files, caching);
          ReadOneEpoch(*NewReader(files, format.data, one), 0);
          ReaderOptions many = options;
          many.part = 5;
          const EpochRead wanted = ReadOneEpoch(*NewReader(files, format.data, many), 2);
          many.cache = one.cache;
          const int before = files.texts_opened;
          ExpectSame(ReadOneEpoch(*NewReader(files, format.data, many), 2), wanted);
          EXPECT_EQ(files.texts_opened, before);
        }
      }
    }
  }
}

TEST(CachedReaderTest, RowsThatAreHeldOutAreAStreamOfTheirOwn) {
  for (FormatCase& format : FormatCases()) {
    format.data.validation_share = 0.3;
    CountedFiles files;
    WriteText(files, kPath, format.text);
    for (const RowSide side : {RowSide::kTrained, RowSide::kHeldOut}) {
      SCOPED_TRACE(format.name + ", side " + std::to_string(static_cast<int>(side)));
      CompareEpochs(files, format.data,
                    {.batch_size = 32, .num_parts = 3, .side = side, .labels = format.labels},
                    OnDisk());
    }
  }
}

TEST(CachedReaderTest, AWindowThatIsFullByBytesHasTheSameOrder) {
  const FormatCase csv = FormatCases()[0];
  CountedFiles files;
  WriteText(files, kPath, csv.text);
  ReaderOptions options{.batch_size = 64};
  const auto ids = [&] { return IdsOf(ReadEpoch(*NewReader(files, csv.data, options))); };
  const std::vector<int> by_rows = ids();
  options.window_bytes = 1500;  // Of lines that take 64 to 960 bytes.
  EXPECT_NE(ids(), by_rows);
  CompareEpochs(files, csv.data, options, MuchMemory());
}

TEST(CachedReaderTest, TheLastStepIsFilledWithTheSameRows) {
  const FormatCase csv = FormatCases()[0];
  CountedFiles files;
  WriteText(files, kPath, csv.text);
  CompareEpochs(files, csv.data, {.batch_size = 110, .num_parts = 3, .fill_last = true},
                MuchMemory());
  CompareEpochs(files, csv.data, {.batch_size = 500, .fill_last = true}, MuchMemory());
}

TEST(CachedReaderTest, APartOfTheNumbersIsTakenOfAllThatAreKept) {
  FormatCase csv = FormatCases()[0];
  CountedFiles files;
  WriteText(files, kPath, csv.text);
  csv.data.kept_numbers = {1};
  CompareEpochs(files, csv.data, {.batch_size = 64}, MuchMemory());
}

TEST(CachedReaderTest, EpochsResumeInTheirMiddle) {
  for (const FormatCase& format : FormatCases()) {
    for (const uint32_t parts : {1u, 3u}) {
      CountedFiles files;
      WriteText(files, kPath, format.text);
      ReaderOptions options{.batch_size = 64, .num_parts = parts, .labels = format.labels};
      ReaderOptions kept = options;
      const auto read = [&](uint32_t epoch, uint64_t skip) {
        SCOPED_TRACE(format.name + ", epoch " + std::to_string(epoch) + " from step " +
                     std::to_string(skip));
        // A process that has just begun.
        kept.cache = std::make_shared<RowCaches>(files, OnDisk());
        const EpochRead wanted = ReadOneEpoch(*NewReader(files, format.data, options), epoch, skip);
        const int before = files.texts_opened;
        ExpectSame(ReadOneEpoch(*NewReader(files, format.data, kept), epoch, skip), wanted);
        return files.texts_opened > before;
      };
      EXPECT_TRUE(read(0, 2));
      EXPECT_TRUE(read(1, 2)) << "no whole epoch was read yet";
      EXPECT_TRUE(read(1, 0));
      EXPECT_FALSE(read(1, 2));
      EXPECT_FALSE(read(0, 3));
      EXPECT_FALSE(read(2, 1000)) << "behind the end";
    }
  }
}

TEST(CachedReaderTest, NegativesAreMadeOfKeptRows) {
  const auto job = ParseJob(R"({
    "data": {"train": ["f"], "shuffle_rows": 50, "max_bad_rows": 100,
             "columns": [{"name": "label", "type": "label"}, {"name": "user"}, {"name": "item"},
                         {"name": "tags", "type": "multi", "separator": ";"},
                         {"name": "n", "type": "numeric", "transform": "log1p"}],
             "features": [{"name": "bucket", "kind": "bucketized", "from": ["n"],
                           "boundaries": [3, 30]},
                          {"name": "cross", "kind": "crossed", "from": ["bucket", "item"]}],
             "item_features": ["item", "tags"], "negatives": {"per_positive": 3}},
    "model": {"type": "logistic"}})",
                            "test", {});
  ASSERT_TRUE(job.ok()) << job.status().message();
  CountedFiles files;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const std::string item = std::to_string(i * i % 23);
    text += std::to_string(i % 2) + ",u" + std::to_string(i % 11) + ",i" + item + ",t" + item +
            ";all," + (i % 17 == 0 ? "x" : std::to_string(i)) + "\n";
  }
  WriteText(files, kPath, text);
  for (const RowCacheOptions& caching : {MuchMemory(), OnDisk()}) {
    ReaderOptions options{.batch_size = 64, .num_parts = 3};
    options.items = std::make_shared<ItemPool>(files, *job);
    ASSERT_TRUE(options.items->Collect().ok());  // Its pass over the text is none of the reader's.
    CompareEpochs(files, job->data, options, caching);
  }
}

TEST(CachedReaderTest, RowsThatManyThreadsParseAreKept) {
  for (const bool bad_rows : {false, true}) {
    CountedFiles files;
    WriteText(files, kPath, NumberedText(0, 6000) + (bad_rows ? "0,what,c\n" : ""));
    DataSpec data = NumberedRows();
    data.max_bad_rows = 1;
    data.shuffle_rows = 1000;
    ManyThreads executor;
    CompareEpochs(files, data, {.batch_size = 2200 * 2, .num_parts = 2, .executor = &executor},
                  OnDisk());
    EXPECT_GT(executor.loops, 0);
  }
}

TEST(CachedReaderTest, TooManyBadRowsEndTheEpochAtTheSamePlace) {
  FormatCase csv = FormatCases()[0];
  CountedFiles files;
  WriteText(files, kPath, csv.text);
  ReaderOptions options{.batch_size = 64};
  options.cache = std::make_shared<RowCaches>(files, MuchMemory());
  ReadOneEpoch(*NewReader(files, csv.data, options), 0);
  csv.data.max_bad_rows = 5;  // Another job, which tolerates fewer.
  const auto end_of = [&](const ReaderOptions& reading) {
    const auto reader = NewReader(files, csv.data, reading);
    Status status = reader->StartEpoch(1, 0);
    size_t batches = 0;
    for (; status.ok(); ++batches) status = reader->Next().status();
    return std::to_string(batches) + " " + status.message();
  };
  const int before = files.texts_opened;
  const std::string kept = end_of(options);
  EXPECT_EQ(files.texts_opened, before);
  options.cache = nullptr;
  EXPECT_EQ(kept, end_of(options));
  EXPECT_NE(kept.find("'what': expected a number in column 'n'"), std::string::npos) << kept;
}

TEST(CachedReaderTest, ImagesAreKept) {
  CountedFiles files;
  std::string images = {0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 3};
  std::string labels = {0, 0, 8, 1, 0, 0, 0, 40};
  for (char i = 0; i < 40; ++i) {
    for (char p = 0; p < 6; ++p) images += static_cast<char>(i * 3 + p);
    labels += static_cast<char>(i % 4);
  }
  WriteText(files, "images-idx3", images);
  WriteText(files, "labels-idx1", labels);
  DataSpec data;
  data.format = DataFormat::kIdx;
  data.image_shape = {2, 3};
  data.shuffle_rows = 10;
  ReaderOptions options{.batch_size = 16, .num_classes = 4};
  const EpochRead wanted = ReadOneEpoch(*NewReader(files, data, options, "images-idx3"), 1);
  options.cache = std::make_shared<RowCaches>(files, OnDisk());
  ReadOneEpoch(*NewReader(files, data, options, "images-idx3"), 0);
  int before = files.texts_opened;
  ExpectSame(ReadOneEpoch(*NewReader(files, data, options, "images-idx3"), 1), wanted);
  EXPECT_EQ(files.texts_opened, before);
  // Other labels of the same images are other rows.
  labels.back() = 3 - labels.back();
  WriteText(files, "labels-idx1", labels);
  before = files.texts_opened;
  ReadOneEpoch(*NewReader(files, data, options, "images-idx3"), 1);
  EXPECT_GT(files.texts_opened, before);
}

}  // namespace
}  // namespace hdps
