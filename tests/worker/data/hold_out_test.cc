// Rows that are held out for validation: all of them, on one side each, however they are read.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

constexpr int kRows = 6000;
constexpr double kShare = 0.2;

class HoldOutTest : public ::testing::Test {
 protected:
  HoldOutTest() : files_(NewMemoryFileSystem()), data_(NumberedRows()) {
    data_.validation_share = kShare;
    data_.shuffle_rows = 500;
    WriteText(*files_, "rows.csv", NumberedText(0, kRows));
  }

  // The ids of an epoch, read by `parts` readers, in the order of the stream.
  std::vector<int> Read(RowSide side, uint32_t parts, uint64_t seed = 1, uint32_t epoch = 0,
                        const std::vector<std::string>& paths = {"rows.csv"}) {
    ReaderOptions options{.seed = seed, .batch_size = 3 * parts + 1, .num_parts = parts};
    options.side = side;
    options.shuffle = side != RowSide::kHeldOut;
    std::vector<std::pair<uint64_t, int>> placed;
    for (options.part = 0; options.part < parts; ++options.part) {
      auto reader = NewBatchReader(*files_, data_, paths, options);
      EXPECT_TRUE(reader.ok()) << reader.status().message();
      for (const Batch& batch : ReadEpoch(**reader, epoch)) {
        const uint64_t first =
            batch.first_row + (options.part + parts - batch.first_row % parts) % parts;
        const std::vector<int> ids = IdsOf(batch);
        for (size_t i = 0; i < ids.size(); ++i) placed.emplace_back(first + i * parts, ids[i]);
      }
    }
    std::ranges::sort(placed);
    std::vector<int> ids;
    for (const auto& [position, id] : placed) {
      EXPECT_EQ(position, ids.size()) << "held out rows take no position";
      ids.push_back(id);
    }
    return ids;
  }

  const std::unique_ptr<FileSystem> files_;
  DataSpec data_;
};

TEST_F(HoldOutTest, BothSidesTogetherAreAllRowsAndShareNone) {
  std::vector<int> all = Read(RowSide::kTrained, 1);
  const std::vector<int> held_out = Read(RowSide::kHeldOut, 1);
  const auto rows = static_cast<double>(held_out.size());
  // Six deviations of a binomial: one of 10^9 right ones is beyond.
  EXPECT_LE(std::fabs(rows - kRows * kShare), 6 * std::sqrt(kRows * kShare * (1 - kShare)));
  all.insert(all.end(), held_out.begin(), held_out.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), size_t{kRows});
  for (int id = 0; id < kRows; ++id) EXPECT_EQ(all[static_cast<size_t>(id)], id);
}

TEST_F(HoldOutTest, AnyNumberOfPartsSeesTheSameStream) {
  const std::vector<int> trained = Read(RowSide::kTrained, 1, 1, 2);
  const std::vector<int> held_out = Read(RowSide::kHeldOut, 1);
  for (const uint32_t parts : {2u, 3u, kPartsMany + 3}) {
    EXPECT_EQ(Read(RowSide::kTrained, parts, 1, 2), trained) << parts;
    EXPECT_EQ(Read(RowSide::kHeldOut, parts), held_out) << parts;
  }
}

TEST_F(HoldOutTest, PackingAndLineEndsChangeNothingAndTheSeedDoes) {
  const std::vector<int> held_out = Read(RowSide::kHeldOut, 1);
  std::string dos = NumberedText(0, kRows);
  for (size_t at = 0; (at = dos.find('\n', at)) != std::string::npos; at += 2) {
    dos.insert(at, "\r");
  }
  WriteText(*files_, "dos.csv", dos);
  EXPECT_EQ(Read(RowSide::kHeldOut, 1, 1, 0, {"dos.csv"}), held_out);
  const std::string text = NumberedText(0, kRows);
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  WriteText(*files_, "rows.csv.gz", packed);
  EXPECT_EQ(Read(RowSide::kHeldOut, 1, 1, 0, {"rows.csv.gz"}), held_out);
  EXPECT_EQ(Read(RowSide::kTrained, kPartsMany, 1, 0, {"rows.csv.gz"}), Read(RowSide::kTrained, 1));
  EXPECT_NE(Read(RowSide::kHeldOut, 1, /*seed=*/2), held_out);
}

TEST_F(HoldOutTest, RowsAreCountedAsTheyAreTrainedOn) {
  const ReaderOptions trained{.side = RowSide::kTrained}, held_out{.side = RowSide::kHeldOut};
  EXPECT_EQ(*CountRows(*files_, data_, {"rows.csv"}, trained), Read(RowSide::kTrained, 1).size());
  EXPECT_EQ(*CountRows(*files_, data_, {"rows.csv"}, held_out), Read(RowSide::kHeldOut, 1).size());
  data_.validation_share = 0;
  EXPECT_EQ(*CountRows(*files_, data_, {"rows.csv"}, trained), uint64_t{kRows});
  EXPECT_EQ(Read(RowSide::kTrained, 1).size(), size_t{kRows});
}

}  // namespace
}  // namespace hdps
