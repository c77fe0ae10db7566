// Tests rows held out for validation: each row is on exactly one side, however the files are read.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_preview.h"
#include "worker/data/held_out/hold_out.h"
#include "worker/data/held_out/share_look.h"
#include "worker/data/line_reader.h"

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

  // Returns the ids of an epoch read by `parts` readers, in the order of the stream.
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
  // Six deviations of a binomial, which one correct run in 10^9 exceeds.
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

// With data.validation_block_lines the lines of a block are on one side, for any number of parts.
TEST_F(HoldOutTest, BlocksOfLinesAreHeldOutWhole) {
  constexpr int kBlock = 40;
  data_.validation_block_lines = kBlock;
  const std::vector<int> held_out = Read(RowSide::kHeldOut, 1);
  ASSERT_EQ(held_out.size() % kBlock, 0u);
  for (size_t i = 0; i < held_out.size(); ++i) {
    EXPECT_EQ(held_out[i], held_out[i - i % kBlock] + static_cast<int>(i % kBlock));
    EXPECT_EQ(held_out[i - i % kBlock] % kBlock, 0) << "blocks begin at the file's first line";
  }
  const double blocks = double{kRows} / kBlock,
               found = static_cast<double>(held_out.size()) / kBlock;
  // Six deviations of a binomial, which one correct run in 10^9 exceeds.
  EXPECT_LE(std::fabs(found - blocks * kShare), 6 * std::sqrt(blocks * kShare * (1 - kShare)));
  std::vector<int> all = Read(RowSide::kTrained, 1);
  for (const uint32_t parts : {3u, kPartsMany + 3}) {
    EXPECT_EQ(Read(RowSide::kTrained, parts), all) << parts;
    EXPECT_EQ(Read(RowSide::kHeldOut, parts), held_out) << parts;
  }
  all.insert(all.end(), held_out.begin(), held_out.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), size_t{kRows});
  for (int id = 0; id < kRows; ++id) EXPECT_EQ(all[static_cast<size_t>(id)], id);
  EXPECT_NE(Read(RowSide::kHeldOut, 1, /*seed=*/2), held_out);
  // The blocks of a second file are others, and comments count among the lines.
  WriteText(*files_, "more.csv", NumberedText(kRows, 2 * kRows));
  std::vector<int> second = Read(RowSide::kHeldOut, 1, 1, 0, {"rows.csv", "more.csv"});
  ASSERT_TRUE(std::equal(held_out.begin(), held_out.end(), second.begin()));
  second.erase(second.begin(), second.begin() + static_cast<ptrdiff_t>(held_out.size()));
  for (int& id : second) id -= kRows;
  EXPECT_NE(second, held_out);
  data_.comment = "#";
  std::string commented = NumberedText(0, kRows);
  for (int line = 0; line < kBlock; ++line) commented.insert(0, "# a comment\n");
  WriteText(*files_, "commented.csv", commented);
  const HoldOut whole(data_, 1);
  for (const int id : Read(RowSide::kHeldOut, 1, 1, 0, {"commented.csv"})) {
    EXPECT_TRUE(whole.Has({0, static_cast<uint64_t>(id + kBlock + 1)}, ""));
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

// ---- The label has no say.

// A row in every format, with any label; nothing else changes.
struct Labelled {
  std::string name;
  DataSpec data;
  std::string head;  // Head of the file.
  std::function<std::string(int id, int label)> row;
};

ColumnSpec Column(const std::string& name, ColumnType type) {
  ColumnSpec column;
  column.name = name;
  column.type = type;
  return column;
}

std::vector<Labelled> AllFormats() {
  const auto number = [](int n) { return std::to_string(n); };
  std::vector<Labelled> all;
  DataSpec csv;
  csv.columns = {Column("user", ColumnType::kCategorical), Column("y", ColumnType::kLabel),
                 Column("n", ColumnType::kNumeric)};
  all.push_back({"csv", csv, "", [=](int id, int y) {
                   return "\"u," + number(id) + " \"\"x\"\"\"," + (y == 0 ? "0" : " \"1\" ") + "," +
                          number(id);
                 }});
  csv.header = true;
  all.push_back({"csv, label last by its header", csv, "n,other,user,Y\n", [=](int id, int y) {
                   return number(id) + ",o,u" + number(id) + "," + number(y);
                 }});
  csv.header = false;
  csv.columns = {Column("a", ColumnType::kLabel), Column("user", ColumnType::kCategorical),
                 Column("b", ColumnType::kLabel)};
  all.push_back({"csv, two labels", csv, "", [=](int id, int y) {
                   return number(y) + ",u" + number(id) + "," + number(1 - y);
                 }});
  DataSpec criteo;
  criteo.format = DataFormat::kCriteo;
  all.push_back({"criteo", criteo, "", [=](int id, int y) {
                   std::string text = number(y);
                   for (int cell = 0; cell < 39; ++cell) text += "\t" + number(id);
                   return text;
                 }});
  for (const DataFormat format : {DataFormat::kLibsvm, DataFormat::kLibfm, DataFormat::kLibffm}) {
    DataSpec entries;
    entries.format = format;
    const std::string entry = format == DataFormat::kLibffm ? "0:" : "";
    all.push_back({std::string(WordOf(format)), entries, "", [=](int id, int y) {
                     return (y == 0 ? "-1 " : "+1.0\t") + entry + number(id) + ":1";
                   }});
  }
  return all;
}

std::string TextOf(const Labelled& format, int rows, int modulus, int* positives = nullptr) {
  std::string text = format.head;
  for (int id = 0; id < rows; ++id) {
    const int label = id / modulus % 2;
    if (positives != nullptr) *positives += label;
    text += format.row(id % modulus, label) + "\n";
  }
  return text;
}

TEST(HoldOutLabelTest, RowsThatDifferInTheirLabelsAreOnOneSide) {
  for (Labelled& format : AllFormats()) {
    format.data.validation_share = 0.3;
    format.data.shuffle_rows = 100;
    constexpr int kDifferent = 200;
    const auto files = NewMemoryFileSystem();
    WriteText(*files, "rows", TextOf(format, 2 * kDifferent, kDifferent));
    uint64_t all = 0;
    for (const RowSide side : {RowSide::kTrained, RowSide::kHeldOut}) {
      ReaderOptions options{.batch_size = 1 << 16, .side = side};
      if (format.data.columns.size() == 3 && format.data.columns[2].type == ColumnType::kLabel) {
        options.labels = {{"a", 2}, {"b", 2}};
      }
      for (const uint32_t parts : {1u, kPartsMany}) {
        options.num_parts = parts;
        uint64_t rows = 0, positives = 0;
        for (options.part = 0; options.part < parts; ++options.part) {
          auto reader = NewBatchReader(*files, format.data, {"rows"}, options);
          ASSERT_TRUE(reader.ok()) << reader.status().message();
          for (int epoch = 0; epoch < 2; ++epoch) {  // The second epoch uses the index.
            for (const Batch& batch : ReadEpoch(**reader, static_cast<uint32_t>(epoch))) {
              rows += batch.num_examples;
              for (uint32_t i = 0; i < batch.num_examples; ++i) {
                positives += batch.labels[size_t{i} * batch.num_labels] > 0 ? 1 : 0;
              }
            }
          }
        }
        EXPECT_EQ(rows, 2 * positives) << format.name << ", parts " << parts;
        EXPECT_GT(rows, 0u) << format.name;
        if (parts == 1) all += rows;
        options.part = 0;
        const auto counted = CountRows(*files, format.data, {"rows"}, options);
        EXPECT_EQ(*counted * 2, rows) << format.name << ", of two epochs";
      }
    }
    EXPECT_EQ(all, 4u * kDifferent) << format.name;
  }
}

TEST(HoldOutLabelTest, TheOrderOfCellsInFilesIsTheirOwn) {
  Labelled format = AllFormats()[1];
  HoldOut hold_out(format.data, 1);
  hold_out.TakeHeader(0, "user,n,y");
  hold_out.TakeHeader(1, "y,user,n");
  EXPECT_EQ(hold_out.HashOf(0, "ann,3,0"), hold_out.HashOf(0, "ann,3,1"));
  EXPECT_NE(hold_out.HashOf(0, "ann,3,0"), hold_out.HashOf(0, "ann,4,0"));
  EXPECT_EQ(hold_out.HashOf(1, "0,ann,3"), hold_out.HashOf(1, "1,ann,3"));
  EXPECT_NE(hold_out.HashOf(1, "0,ann,3"), hold_out.HashOf(1, "0,bob,3"));
  EXPECT_EQ(hold_out.HashOf(1, "0"), hold_out.HashOf(1, "1")) << "a row that is too short";
}

// ---- Whether a share is worth its figures.

Job JobOf(const Labelled& format, double share) {
  Job job;
  job.data = format.data;
  job.data.train = {"rows"};
  job.data.validation_share = share;
  return job;
}

TEST(ShareLookTest, FewDifferentRowsAreSaid) {
  const Labelled format = AllFormats()[0];
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "rows", TextOf(format, 4000, 40));
  const Job job = JobOf(format, 0.1);
  const Result<ShareLook> look = LookAtShare(*files, job);
  ASSERT_TRUE(look.ok()) << look.status().message();
  EXPECT_TRUE(look->whole);
  EXPECT_EQ(look->trained + look->held_out, 4000u);
  EXPECT_EQ(look->held_out % 100, 0u) << "all copies of a row";
  EXPECT_NEAR(look->different, static_cast<double>(look->held_out) / 100, 1e-9);
  const std::vector<std::string> why = WhyNotShare(*look, 0.1);
  ASSERT_EQ(why.size(), 1u);
  EXPECT_NE(why[0].find("data.validation_share holds out"), std::string::npos) << why[0];
  EXPECT_NE(why[0].find("different rows would"), std::string::npos) << why[0];
  const Result<DataPreview> preview = PreviewJobData(*files, job);
  ASSERT_TRUE(preview.ok()) << preview.status().message();
  EXPECT_NE(std::ranges::find(preview->warnings, why[0]), preview->warnings.end());
  // Many different rows and both classes: no finding.
  WriteText(*files, "rows", TextOf(format, 4000, 2000));
  EXPECT_TRUE(WhyNotShare(*LookAtShare(*files, job), 0.1).empty());
}

TEST(ShareLookTest, AClassThatIsMissingOnASideIsSaid) {
  ShareLook look{.whole = true, .trained = 900, .held_out = 100, .different = 100};
  look.trained_labels = {890, 10};
  look.held_out_labels = {100, 0};
  ASSERT_EQ(WhyNotShare(look, 0.1).size(), 1u);
  EXPECT_NE(WhyNotShare(look, 0.1)[0].find("none that has the label 1"), std::string::npos);
  look.whole = false;
  EXPECT_TRUE(WhyNotShare(look, 0.1).empty()) << "rows that were not looked at may have it";
  look.trained_labels = {400, 500};
  EXPECT_EQ(WhyNotShare(look, 0.1).size(), 1u) << "fifty were to be expected";
  look.trained_labels = {900, 0};
  look.held_out_labels = {60, 40};
  EXPECT_NE(WhyNotShare(look, 0.1).at(0).find("all that have the label 1"), std::string::npos);
}

}  // namespace
}  // namespace hdps
