// Tests the promises of the stream: every row once, the same for every worker, decided by the seed.
#include "worker/data/batch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<BatchReader> MakeReader(FileSystem& files, const DataSpec& data,
                                        const ReaderOptions& options,
                                        std::vector<std::string> paths = {"rows.csv"}) {
  auto reader = NewBatchReader(files, data, paths, options);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return *std::move(reader);
}

std::vector<int> Iota(int count) {
  std::vector<int> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// Puts the parts of one step back together: position p is row p / N of part p % N.
std::vector<int> Interleave(const std::vector<Batch>& parts, uint64_t first_row) {
  const size_t num_parts = parts.size();
  size_t rows = 0;
  for (const Batch& part : parts) rows += part.num_examples;
  std::vector<size_t> taken(num_parts, 0);
  std::vector<int> ids;
  for (uint64_t position = first_row; position < first_row + rows; ++position) {
    const size_t part = position % num_parts;
    ids.push_back(IdsOf(parts[part]).at(taken[part]++));
  }
  return ids;
}

struct SplitCase {
  int rows;
  uint32_t batch_size;
  bool shuffle;
};

class SplitTest : public ::testing::TestWithParam<SplitCase> {};

TEST_P(SplitTest, PartsInterleavedAreTheWholeStream) {
  const SplitCase& c = GetParam();
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv", NumberedText(0, c.rows));
  const DataSpec data = NumberedRows();
  ReaderOptions options{.seed = 7, .batch_size = c.batch_size, .shuffle = c.shuffle};
  const auto whole = ReadEpoch(*MakeReader(*files, data, options), 3);
  const auto steps = static_cast<size_t>((c.rows + static_cast<int>(c.batch_size) - 1) /
                                         static_cast<int>(c.batch_size));
  ASSERT_EQ(whole.size(), steps);

  for (options.num_parts = 1; options.num_parts <= 4; ++options.num_parts) {
    std::vector<std::vector<Batch>> parts;
    std::multiset<int> seen;
    std::vector<size_t> sizes;
    for (options.part = 0; options.part < options.num_parts; ++options.part) {
      parts.push_back(ReadEpoch(*MakeReader(*files, data, options), 3));
      ASSERT_EQ(parts.back().size(), steps) << "every part has every step, if only an empty one";
      const std::vector<int> ids = IdsOf(parts.back());
      seen.insert(ids.begin(), ids.end());
      sizes.push_back(ids.size());
    }
    const std::vector<int> all = Iota(c.rows);
    EXPECT_EQ(seen, std::multiset<int>(all.begin(), all.end())) << "each row once";
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    EXPECT_LE(*most - *least, 1u);
    for (size_t step = 0; step < steps; ++step) {
      std::vector<Batch> of_step;
      for (const auto& part : parts) of_step.push_back(part[step]);
      EXPECT_EQ(of_step[0].first_row, step * c.batch_size);
      EXPECT_EQ(Interleave(of_step, of_step[0].first_row), IdsOf(whole[step]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SplitTest,
                         ::testing::Values(SplitCase{1, 4, true}, SplitCase{7, 4, true},
                                           SplitCase{12, 4, true}, SplitCase{100, 1, true},
                                           SplitCase{100, 7, true}, SplitCase{101, 10, true},
                                           SplitCase{1000, 64, true}, SplitCase{1001, 1000, true},
                                           SplitCase{50, 200, true}, SplitCase{33, 8, false},
                                           SplitCase{33, 5, false}));

TEST(BatchReaderTest, SeedAndEpochDecideTheOrder) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv", NumberedText(0, 200));
  DataSpec data = NumberedRows();
  const auto order = [&](uint64_t seed, uint32_t epoch) {
    return IdsOf(ReadEpoch(*MakeReader(*files, data, {.seed = seed, .batch_size = 32}), epoch));
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), Iota(200));
  data.shuffle_rows = 0;
  EXPECT_EQ(order(1, 0), Iota(200)) << "no window: the files' order";
}

TEST(BatchReaderTest, AReaderThatIsStartedAgainGivesTheSameEpoch) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv", NumberedText(0, 200));
  const auto reader = MakeReader(*files, NumberedRows(), {.seed = 1, .batch_size = 32});
  const std::vector<int> first = IdsOf(ReadEpoch(*reader, 5));
  ASSERT_TRUE(reader->StartEpoch(6, 0).ok());
  ASSERT_TRUE(reader->Next().ok());  // Leaves it in the middle of another epoch.
  EXPECT_EQ(IdsOf(ReadEpoch(*reader, 5)), first);
}

TEST(BatchReaderTest, SkippedStepsAreThoseThatWouldHaveComeFirst) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv", NumberedText(0, 203));
  const auto reader =
      MakeReader(*files, NumberedRows(), {.seed = 1, .batch_size = 10, .part = 1, .num_parts = 3});
  const auto all = ReadEpoch(*reader, 2);
  for (size_t skip : {0u, 1u, 7u, 20u, 21u, 99u}) {
    const auto rest = ReadEpoch(*reader, 2, skip);
    ASSERT_EQ(rest.size(), all.size() - std::min(skip, all.size()));
    for (size_t step = 0; step < rest.size(); ++step) {
      EXPECT_EQ(IdsOf(rest[step]), IdsOf(all[skip + step]));
      EXPECT_EQ(rest[step].first_row, all[skip + step].first_row);
    }
  }
}

TEST(BatchReaderTest, FilesAreOneStream) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "a.csv", NumberedText(0, 30));
  WriteText(*files, "b.csv", "");
  WriteText(*files, "c.csv", NumberedText(30, 100));
  const auto reader = MakeReader(*files, NumberedRows(), {.batch_size = 8, .shuffle = false},
                                 {"a.csv", "b.csv", "c.csv"});
  EXPECT_EQ(IdsOf(ReadEpoch(*reader)), Iota(100));
  EXPECT_EQ(reader->progress(), 1.0);
  EXPECT_EQ(reader->bytes_read(), NumberedText(0, 100).size());
}

TEST(BatchReaderTest, LinesThatAreNoRowsHaveNoPosition) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.header = true;
  data.comment = "|";
  const std::string text =
      "\xef\xbb\xbflabel,id,color\r\n|note\r\n\r\n0,0,a\r\n   \r\n|\n0,1,b\n\n0,2,c";
  WriteText(*files, "a.csv", text);
  WriteText(*files, "b.csv", "label,id,color\n0,3,d");
  const auto batches =
      ReadEpoch(*MakeReader(*files, data, {.batch_size = 2, .shuffle = false}, {"a.csv", "b.csv"}));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_THAT(IdsOf(batches[0]), ElementsAre(0, 1));
  EXPECT_THAT(IdsOf(batches[1]), ElementsAre(2, 3));
  EXPECT_EQ(batches[0].sparse[0].keys[0], FeatureKey(HashString("color"), "a"));
  EXPECT_EQ(batches[1].sparse[0].keys[0], FeatureKey(HashString("color"), "c"));
}

TEST(BatchReaderTest, ABadRowIsReportedByPlaceThroughTheShuffle) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "good.csv", NumberedText(0, 40));
  ASSERT_TRUE(files->MakeDirectories("dir").ok());
  WriteText(*files, "dir/bad.csv", NumberedText(40, 56) + "0,4x2,red\n" + NumberedText(57, 60));
  const auto reader =
      MakeReader(*files, NumberedRows(), {.batch_size = 16}, {"good.csv", "dir/bad.csv"});
  ASSERT_TRUE(reader->StartEpoch(0, 0).ok());
  while (true) {
    const auto batch = reader->Next();
    if (batch.ok()) {
      ASSERT_TRUE(batch->has_value()) << "the bad row went unnoticed";
      continue;
    }
    EXPECT_EQ(batch.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(batch.status().message(),
                HasSubstr("dir/bad.csv:17:3: '4x2': expected a number in column 'id'"));
    EXPECT_THAT(batch.status().message(), HasSubstr("max_bad_rows"));
    break;
  }
}

TEST(BatchReaderTest, ABadRowKeepsItsPosition) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.max_bad_rows = 2;
  WriteText(*files, "rows.csv", NumberedText(0, 5) + "?\n" + NumberedText(6, 11) + "0,1\n");
  const auto reader = MakeReader(*files, data, {.batch_size = 4, .shuffle = false});
  for (int epoch = 0; epoch < 2; ++epoch) {  // The limit applies to each epoch.
    const auto batches = ReadEpoch(*reader);
    ASSERT_EQ(batches.size(), 3u);
    EXPECT_THAT(IdsOf(batches[0]), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(IdsOf(batches[1]), ElementsAre(4, 6, 7));
    EXPECT_THAT(IdsOf(batches[2]), ElementsAre(8, 9, 10));
    EXPECT_EQ(reader->bad_rows(), 2u);
  }
  data.max_bad_rows = 1;
  const auto strict = MakeReader(*files, data, {.batch_size = 4, .shuffle = false});
  ASSERT_TRUE(strict->StartEpoch(0, 0).ok());
  EXPECT_TRUE(strict->Next().ok());
  EXPECT_TRUE(strict->Next().ok());
  EXPECT_EQ(strict->Next().status().code(), Code::kInvalidArgument);
}

// ---- Last steps that are filled up.

TEST(BatchReaderTest, TheLastStepIsFilledWithTheFirstRows) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv", NumberedText(0, 10));
  const auto plain = [&files](const ReaderOptions& options, uint64_t skip) {
    std::vector<std::vector<int>> ids;
    const auto reader = MakeReader(*files, NumberedRows(), options);
    for (const Batch& batch : ReadEpoch(*reader, 0, skip)) ids.push_back(IdsOf(batch));
    return ids;
  };
  using Steps = std::vector<std::vector<int>>;
  ReaderOptions options{.batch_size = 4, .shuffle = false, .fill_last = true};
  EXPECT_EQ(plain(options, 0), (Steps{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 0, 1}}));
  EXPECT_EQ(plain(options, 2), (Steps{{8, 9, 0, 1}})) << "as if it had read the steps before";
  EXPECT_EQ(plain(options, 3), Steps());
  options.batch_size = 5;
  EXPECT_EQ(plain(options, 0), (Steps{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}})) << "nothing to fill";
  options.batch_size = 24;
  const Steps twice = plain(options, 0);
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].size(), 24u);
  EXPECT_EQ(twice[0][23], 3) << "a step of more rows than there are has them more than once";
  // Every part of every step is as large as the others.
  options.batch_size = 6;
  options.num_parts = 3;
  std::multiset<int> last;
  for (options.part = 0; options.part < 3; ++options.part) {
    const Steps own = plain(options, 0);
    ASSERT_EQ(own.size(), 2u);
    EXPECT_EQ(own[1].size(), 2u);
    last.insert(own[1].begin(), own[1].end());
  }
  EXPECT_EQ(last, (std::multiset<int>{0, 1, 6, 7, 8, 9}));
}

// ---- Many parts: rows by their index.

// Compares the interleaved batches of `parts` readers with one reader of all rows, epoch by epoch.
void ExpectPartsAreTheStream(FileSystem& files, const DataSpec& data,
                             const std::vector<std::string>& paths, uint32_t parts,
                             uint64_t skip_steps = 0, bool fill_last = false) {
  ReaderOptions options{.batch_size = 3 * parts + 1, .num_parts = 1, .fill_last = fill_last};
  const auto whole = MakeReader(files, data, options, paths);
  options.num_parts = parts;
  std::vector<std::unique_ptr<BatchReader>> readers;
  for (options.part = 0; options.part < parts; ++options.part) {
    readers.push_back(MakeReader(files, data, options, paths));
  }
  for (const uint32_t epoch : {0u, 1u, 2u, 1u}) {
    const std::vector<Batch> all = ReadEpoch(*whole, epoch, skip_steps);
    std::vector<std::vector<Batch>> of_part;
    for (const auto& reader : readers) of_part.push_back(ReadEpoch(*reader, epoch, skip_steps));
    for (size_t step = 0; step < all.size(); ++step) {
      std::vector<Batch> of_step;
      for (const std::vector<Batch>& batches : of_part) {
        ASSERT_EQ(batches.size(), all.size());
        EXPECT_EQ(batches[step].first_row, all[step].first_row);
        of_step.push_back(batches[step]);
      }
      EXPECT_EQ(Interleave(of_step, all[step].first_row), IdsOf(all[step])) << "epoch " << epoch;
    }
    for (const auto& reader : readers) EXPECT_EQ(reader->progress(), 1);
  }
}

TEST(ManyPartsTest, InterleavedAreTheWholeStreamInEveryEpoch) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.shuffle_rows = 100;
  for (const int rows : {0, 1, 31, 32, 33, 99, 100, 101, 1000, 3000}) {
    WriteText(*files, "rows.csv", NumberedText(0, rows));
    ExpectPartsAreTheStream(*files, data, {"rows.csv"}, kPartsMany);
  }
  ExpectPartsAreTheStream(*files, data, {"rows.csv"}, kPartsMany + 13, 7);
  ExpectPartsAreTheStream(*files, data, {"rows.csv"}, kPartsMany, 0, /*fill_last=*/true);
  ExpectPartsAreTheStream(*files, data, {"rows.csv"}, kPartsMany, 7, /*fill_last=*/true);
  data.shuffle_rows = 1 << 16;  // More than there are.
  ExpectPartsAreTheStream(*files, data, {"rows.csv"}, kPartsMany + 24);
}

TEST(ManyPartsTest, LinesThatAreNoRowsAndSeveralFilesChangeNothing) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.shuffle_rows = 64;
  data.header = true;
  data.comment = "#";
  std::string untidy = "\xef\xbb\xbflabel,id,color\r\n";
  for (int row = 0; row < 500; ++row) {
    if (row % 7 == 0) untidy += "\n  \r\n";
    if (row % 32 == 5) untidy += "# " + std::string(static_cast<size_t>(row), 'x') + "\n";
    std::string line = NumberedText(row, row + 1);
    line.pop_back();
    untidy += line + (row % 3 == 0 ? "\r\n" : "\n");
  }
  WriteText(*files, "a.csv", untidy + "# the end");
  WriteText(*files, "empty.csv", "");
  WriteText(*files, "header.csv", "label,id,color\n");
  const std::string more = "label,id,color\n" + NumberedText(500, 700);
  WriteText(*files, "b.csv", more.substr(0, more.size() - 1));  // Its last line has no line end.
  ExpectPartsAreTheStream(*files, data, {"a.csv", "empty.csv", "b.csv", "header.csv"}, kPartsMany);
}

TEST(ManyPartsTest, BadRowsAreNamedByPlaceInEveryEpoch) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv",
            NumberedText(0, 500) + "# no row\n0,x,c\n" + NumberedText(500, 900));
  DataSpec data = NumberedRows();
  data.comment = "#";
  int told = 0;
  for (uint32_t part = 0; part < kPartsMany; ++part) {
    data.max_bad_rows = 1;
    const auto reader =
        MakeReader(*files, data, {.batch_size = 64, .part = part, .num_parts = kPartsMany});
    ReadEpoch(*reader, 0);
    const uint64_t bad = reader->bad_rows();
    ReadEpoch(*reader, 0);
    EXPECT_EQ(reader->bad_rows(), bad);
    data.max_bad_rows = 0;
    const auto strict =
        MakeReader(*files, data, {.batch_size = 64, .part = part, .num_parts = kPartsMany});
    for (int time = 0; bad > 0 && time < 2; ++time) {
      ASSERT_TRUE(strict->StartEpoch(0, 0).ok());
      Status status;
      while (status.ok()) status = strict->Next().status();
      EXPECT_THAT(status.message(), HasSubstr("rows.csv:502:3: 'x'"));
      ++told;
    }
  }
  EXPECT_EQ(told, 2);
}

TEST(ManyPartsTest, FilesThatCannotBeReadAnywhereGoThroughTheWindow) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.shuffle_rows = 2000;
  std::string long_line = NumberedText(3000, 3001);
  // So many of them fill a window by their bytes before their number does.
  long_line.insert(long_line.size() - 1, std::string((size_t{1} << 30) / 2000, 'c'));
  WriteText(*files, "long.csv", NumberedText(0, 3000) + long_line + NumberedText(3001, 6000));
  ExpectPartsAreTheStream(*files, data, {"long.csv"}, kPartsMany);
}

TEST(ManyPartsTest, AFileThatChangesBetweenEpochsIsIndexedAgain) {
  const auto files = NewMemoryFileSystem();
  const DataSpec data = NumberedRows();
  WriteText(*files, "rows.csv", NumberedText(0, 640));
  const auto reader = MakeReader(*files, data, {.batch_size = 64, .num_parts = kPartsMany});
  EXPECT_EQ(IdsOf(ReadEpoch(*reader, 0)).size(), 640u / kPartsMany);
  WriteText(*files, "rows.csv", NumberedText(0, 960));
  EXPECT_EQ(IdsOf(ReadEpoch(*reader, 1)).size(), 960u / kPartsMany);
  // It is an error when it is read.
  ASSERT_TRUE(reader->StartEpoch(2, 0).ok());
  WriteText(*files, "rows.csv", "0,1,c1\n");
  Status status;
  for (int step = 0; status.ok() && step < 20; ++step) status = reader->Next().status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("rows.csv is not what it was"));
}

TEST(BatchReaderTest, AMissingFileIsNamedBeforeAnythingIsRead) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "here.csv", "");
  const auto reader = NewBatchReader(*files, NumberedRows(), {"here.csv", "gone.csv"}, {});
  EXPECT_EQ(reader.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(reader.status().message(), HasSubstr("gone.csv"));
  EXPECT_EQ(NewBatchReader(*files, NumberedRows(), {}, {}).status().code(), Code::kInvalidArgument);
}

TEST(BatchReaderTest, AnEmptyFileHasNoSteps) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows.csv", "\n\n");
  EXPECT_TRUE(ReadEpoch(*MakeReader(*files, NumberedRows(), {.batch_size = 4})).empty());
}

}  // namespace
}  // namespace hdps
