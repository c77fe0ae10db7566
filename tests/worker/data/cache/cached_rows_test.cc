// Tests packed rows, and that a file of them that is not what was written gives nothing.
#include "worker/data/cache/cached_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/fault_file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/cache/cached_row.h"
#include "worker/data/cache/row_writer.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "kept/all.rows";
constexpr CachedShape kShape{.num_numbers = 2, .num_features = 2};

Row RowOf(uint64_t i) {
  Row row;
  row.label = static_cast<float>(i % 2);
  for (uint64_t k = 0; k <= i % 3; ++k) row.keys.push_back(i * 10 + k);
  row.EndFeature();
  row.AddFeature(i);
  if (i % 4 == 0) row.weights.assign(row.keys.size(), 0.25f);
  return row;
}
std::vector<float> NumbersOf(uint64_t i) { return {static_cast<float>(i), 0.5f}; }

void AddTo(RowWriter* writer, uint64_t i) {
  CachedRun run;
  if (i % 7 == 6) {
    run.AddBad("f:" + std::to_string(i) + ": no row");
  } else {
    run.Add(kShape, RowOf(i), NumbersOf(i));
  }
  run.EndRow(i, static_cast<uint32_t>(i % 5 + 1));
  writer->Add(run);
}

// Has so much else to do that submitted work waits.
class NeverRuns : public Executor {
 public:
  void ParallelFor(size_t, const std::function<void(size_t)>&) override {}
  void Submit(std::function<void()> work) override { waiting_.push_back(std::move(work)); }
  int threads() const override { return 1; }
  void RunAll() {
    for (const auto& work : waiting_) work();
  }

 private:
  std::vector<std::function<void()>> waiting_;
};

// Returns true if row i is read as it was written; false if it is found damaged.
bool RowIsRight(const CachedRows& rows, uint64_t i) {
  RowEntry entry;
  std::span<const std::byte> bytes;
  if (!rows.EntryOf(i, &entry) || !rows.BytesAt(entry, &bytes)) return false;
  EXPECT_EQ(entry.window_lines(), i % 5 + 1);
  Row row;
  std::vector<float> numeric;
  const std::optional<PackedRow> packed = FindParts(kShape, bytes);
  if (!packed) return false;
  EXPECT_EQ(packed->bad, i % 7 == 6);
  if (packed->bad) {
    EXPECT_EQ(packed->why, "f:" + std::to_string(i) + ": no row");
    return true;
  }
  if (!Unpack(kShape, *packed, &row, &numeric)) return false;
  const Row wanted = RowOf(i);
  EXPECT_EQ(row.label, wanted.label);
  EXPECT_EQ(row.keys, wanted.keys);
  EXPECT_EQ(row.weights, wanted.weights);
  EXPECT_EQ(row.key_ends, wanted.key_ends);
  EXPECT_EQ(numeric, NumbersOf(i));
  return true;
}

std::shared_ptr<RowBudget> Budget(uint64_t bytes = uint64_t{1} << 30) {
  return std::make_shared<RowBudget>(bytes);
}

// Writes rows in an order that is not theirs.
std::shared_ptr<const CachedRows> WriteRows(FileSystem& files, uint64_t count,
                                            const RowWriterOptions& options,
                                            std::shared_ptr<RowBudget> budget) {
  RowWriter writer(files, options, std::move(budget));
  for (uint64_t i = 0; i < count; ++i) AddTo(&writer, i ^ 1);
  for (uint64_t i = 0; i < 3; ++i) AddTo(&writer, i);  // They are there already.
  auto rows = writer.Finish("the stamp");
  EXPECT_TRUE(rows.ok()) << rows.status().message();
  return rows.ok() ? *rows : nullptr;
}

TEST(CachedRowsTest, RowsAreReadAsTheyWereWritten) {
  constexpr uint64_t kRows = 200'000;  // Several blocks.
  for (const bool in_memory : {true, false}) {
    const auto files = NewMemoryFileSystem();
    const auto rows =
        WriteRows(*files, kRows, {.in_memory = in_memory, .path = kPath, .holder = ""}, Budget());
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(rows->num_rows(), kRows);
    EXPECT_EQ(rows->stamp(), "the stamp");
    EXPECT_EQ(rows->path(), in_memory ? "" : kPath);
    EXPECT_GT(rows->bytes(), 2 * kRowBlockBytes);
    for (uint64_t i = 0; i < kRows; ++i) ASSERT_TRUE(RowIsRight(*rows, i)) << i;
    EXPECT_EQ(files->Exists(kPath), !in_memory);
  }
}

TEST(CachedRowsTest, AFileIsTheSameWhoeverWritesIt) {
  constexpr uint64_t kRows = 200'000;
  const auto executor = NewTbbExecutor(2);
  NeverRuns busy;
  std::vector<std::string> written;
  for (Executor* const beside : std::initializer_list<Executor*>{nullptr, executor.get(), &busy}) {
    const auto files = NewMemoryFileSystem();
    const RowWriterOptions options{
        .in_memory = false, .path = kPath, .holder = "", .executor = beside};
    ASSERT_NE(WriteRows(*files, kRows, options, Budget()), nullptr);
    written.push_back(*ReadWholeFile(*files, kPath, uint64_t{1} << 30));
  }
  EXPECT_GT(written[0].size(), 2 * kRowBlockBytes);
  EXPECT_TRUE(written[0] == written[1] && written[0] == written[2]);
  // A task that is still submitted finds no file to write to.
  busy.RunAll();
}

TEST(CachedRowsTest, AFileThatIsGivenUpLeavesNothing) {
  const auto executor = NewTbbExecutor(2);
  const auto files = NewMemoryFileSystem();
  {
    RowWriter writer(*files,
                     {.in_memory = false, .path = kPath, .holder = "", .executor = executor.get()},
                     Budget());
    for (uint64_t i = 0; i < 100'000; ++i) AddTo(&writer, i);
    ASSERT_TRUE(writer.status().ok()) << writer.status().message();
  }
  EXPECT_EQ(files->List("kept")->size(), 0u);
}

TEST(CachedRowsTest, ADiskThatFailsEndsTheFile) {
  const auto executor = NewTbbExecutor(2);
  for (Executor* const beside : std::initializer_list<Executor*>{nullptr, executor.get()}) {
    FaultFileOptions full;
    full.faults.push_back(
        {.kind = FileFault::Kind::kFull, .glob = "*", .amount = 1000, .window = {}});
    const auto files = NewFaultFileSystem(NewMemoryFileSystem(), full, NewSystemClock());
    RowWriter writer(*files, {.in_memory = false, .path = kPath, .holder = "", .executor = beside},
                     Budget());
    // The error of the first block is found with the second one.
    for (uint64_t i = 0; i < 240'000; ++i) AddTo(&writer, i);
    EXPECT_EQ(writer.status().code(), Code::kIoError) << writer.status().message();
    EXPECT_FALSE(writer.Finish("x").ok());
    EXPECT_EQ(files->List("kept")->size(), 0u);
  }
}

TEST(CachedRowsTest, NoRowsAreAStreamToo) {
  for (const bool in_memory : {true, false}) {
    const auto files = NewMemoryFileSystem();
    const auto budget = Budget();
    RowWriter writer(*files, {.in_memory = in_memory, .path = kPath, .holder = ""}, budget);
    const auto rows = writer.Finish("empty");
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ((*rows)->num_rows(), 0u);
    EXPECT_EQ((*rows)->stamp(), "empty");
  }
}

TEST(CachedRowsTest, WhatDoesNotFitGoesToTheFile) {
  const auto files = NewMemoryFileSystem();
  // Two blocks and the index, and so the third block is one too many.
  const auto budget = Budget(2 * kRowBlockBytes + (uint64_t{3} << 20));
  constexpr uint64_t kRows = 240'000;
  const auto rows =
      WriteRows(*files, kRows, {.in_memory = true, .path = kPath, .holder = ""}, budget);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->path(), kPath);
  for (uint64_t i = 0; i < kRows; ++i) ASSERT_TRUE(RowIsRight(*rows, i)) << i;
  EXPECT_EQ(budget->taken(), 0u) << "a file takes no memory of its own";
}

TEST(CachedRowsTest, WithoutAFileItIsGivenUp) {
  const auto files = NewMemoryFileSystem();
  const auto budget = Budget(kRowBlockBytes + (uint64_t{1} << 20));
  RowWriter writer(*files, {.in_memory = true, .path = "", .holder = ""}, budget);
  uint64_t row = 0;
  for (; writer.status().ok() && row < 1'000'000; ++row) AddTo(&writer, row);
  EXPECT_EQ(writer.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(writer.status().message(), HasSubstr("5.00 MiB"));
  EXPECT_GT(row, 50'000u);
  EXPECT_EQ(budget->taken(), 0u);
  EXPECT_FALSE(writer.Finish("x").ok());
}

TEST(CachedRowsTest, AStreamThatLacksARowIsNone) {
  const auto files = NewMemoryFileSystem();
  RowWriter writer(*files, {.in_memory = false, .path = kPath, .holder = ""}, Budget());
  for (const uint64_t row : {0u, 1u, 3u}) AddTo(&writer, row);
  const auto rows = writer.Finish("x");
  EXPECT_THAT(rows.status().message(), HasSubstr("1 rows before the last one were not read"));
  EXPECT_FALSE(files->Exists(kPath));
}

TEST(CachedRowsTest, OneWriterHasTheFile) {
  const auto files = NewMemoryFileSystem();
  const RowWriterOptions options{.in_memory = false, .path = kPath, .holder = "the first"};
  RowWriter first(*files, options, Budget()), second(*files, options, Budget());
  AddTo(&first, 0);
  AddTo(&second, 0);
  EXPECT_EQ(second.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(second.status().message(), HasSubstr("is held by the first"));
  EXPECT_TRUE(first.Finish("x").ok());
  EXPECT_TRUE(files->Exists(kPath));
  EXPECT_FALSE(files->Exists(std::string(kPath) + ".lock"));
}

class DamagedFileTest : public ::testing::Test {
 protected:
  DamagedFileTest() {
    WriteRows(*files_, kRows, {.in_memory = false, .path = kPath, .holder = ""}, Budget());
    whole_ = *ReadWholeFile(*files_, kPath, uint64_t{1} << 30);
  }
  static constexpr uint64_t kRows = 40;
  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::string whole_;
};

TEST_F(DamagedFileTest, EveryChangedByteIsNoticed) {
  for (size_t at = 0; at < whole_.size(); ++at) {
    std::string changed = whole_;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    WriteText(*files_, kPath, changed);
    const auto opened = CachedRows::Open(*files_, kPath);
    if (!opened.ok()) {
      EXPECT_THAT(opened.status().message(), HasSubstr(kPath));
      continue;
    }
    bool noticed = false;
    for (uint64_t i = 0; i < kRows; ++i) noticed = noticed || !RowIsRight(**opened, i);
    EXPECT_TRUE(noticed) << "byte " << at;
  }
}

TEST_F(DamagedFileTest, EveryCutAndEveryForeignFileIsRefused) {
  for (size_t size = 0; size < whole_.size(); ++size) {
    WriteText(*files_, kPath, whole_.substr(0, size));
    EXPECT_EQ(CachedRows::Open(*files_, kPath).status().code(), Code::kCorruption) << size;
  }
  for (const std::string& text : {std::string("1,2,3\n"), std::string(5000, '\0'), whole_ + "x"}) {
    WriteText(*files_, kPath, text);
    EXPECT_EQ(CachedRows::Open(*files_, kPath).status().code(), Code::kCorruption);
  }
  EXPECT_EQ(CachedRows::Open(*files_, "none").status().code(), Code::kNotFound);
}

// Bytes whose hashes are right, but that are no rows, are no rows: nothing is read out of bounds.
TEST(PackedRowTest, AnyBytesAreARowOrNone) {
  Random random(3);
  const CachedShape shapes[] = {
      kShape,
      {.num_numbers = 0, .num_features = 0},
      {.form = CachedForm::kBase, .num_numbers = 1, .num_features = 3, .num_labels = 2},
      {.num_features = 5, .weights = true, .groups = true, .ids = true}};
  uint64_t rows = 0, none = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random.Below(80));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(8));
    Row row;
    std::vector<float> numeric;
    const CachedShape& shape = shapes[random.Below(4)];
    const std::optional<PackedRow> packed = FindParts(shape, bytes);
    const bool unpacked = packed && (packed->bad || Unpack(shape, *packed, &row, &numeric));
    ++(unpacked ? rows : none);
    if (!unpacked || packed->bad) continue;
    ASSERT_EQ(row.key_ends.size(), shape.num_features);
    EXPECT_EQ(shape.num_features == 0 ? 0 : row.key_ends.back(), row.keys.size());
    EXPECT_TRUE(row.weights.empty() || row.weights.size() == row.keys.size());
  }
  EXPECT_GT(rows, 1000u);
  EXPECT_GT(none, 1000u);
}

}  // namespace
}  // namespace hdps
