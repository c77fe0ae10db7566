// Tests the files for TensorBoard: their bytes, what is in them, and that they are readable when
// cut.
#include "scheduler/report/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/fault_file_system.h"
#include "scheduler/report/event_records.h"
#include "tests/common/platform/settable_clock.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr double kNow = 1700000000.5;
constexpr char kFirst[] = "out/tensorboard/events.out.tfevents.1700000000.hdps";
constexpr char kProgress[] =
    R"({"step": 40, "train_loss": 0.5, "learning_rate": 0.01, "examples_per_second": null})";
constexpr char kEvaluated[] =
    R"({"step": 80, "eval_auc": 0.75, "eval_metrics": {"auc": 0.75, "hr@10": null}})";
constexpr char kSet[] =
    R"({"step": 80, "eval_set": "late", "eval_auc": 0.25, "eval_metrics": {"auc": 0.25}})";

// CRC32C bit by bit: polynomial 0x1edc6f41, reflected.
uint32_t MaskedCrc(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

template <typename Number>
Number NumberAt(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(Number));
  return number;
}

// Returns the payloads of the whole records at the beginning of `bytes`, as TensorBoard reads them.
// A checksum that is wrong fails the test.
std::vector<std::string> RecordsIn(std::string_view bytes) {
  std::vector<std::string> records;
  while (bytes.size() >= 12) {
    const auto length = NumberAt<uint64_t>(bytes, 0);
    EXPECT_EQ(NumberAt<uint32_t>(bytes, 8), MaskedCrc(bytes.substr(0, 8)));
    if (bytes.size() < 12 + length + 4) break;
    const std::string_view payload = bytes.substr(12, length);
    EXPECT_EQ(NumberAt<uint32_t>(bytes, 12 + length), MaskedCrc(payload));
    records.emplace_back(payload);
    bytes.remove_prefix(12 + length + 4);
  }
  return records;
}

std::string HexOf(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    for (const int shift : {4, 0})
      hex += "0123456789abcdef"[static_cast<uint8_t>(byte) >> shift & 15];
  }
  return hex;
}

class EventFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanWriteEvents().ok()) GTEST_SKIP() << CanWriteEvents().message();
  }
  std::unique_ptr<EventFile> NewFile(FileSystem& files) {
    return std::make_unique<EventFile>(files, "out/tensorboard", "seed 1", [this] { return now_; });
  }
  std::string Read(const std::string& path) {
    const Result<std::string> bytes = ReadWholeFile(*files_, path, 1u << 20);
    return bytes.ok() ? *bytes : "";
  }
  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  double now_ = kNow;
};

// TensorBoard's own RecordWriter (2.21) makes the same bytes of the same messages.
TEST_F(EventFileTest, RecordsHaveTheBytesThatTensorBoardReads) {
  EXPECT_EQ(HexOf(VersionRecord(kNow)),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  EXPECT_EQ(HexOf(SessionRecord(kNow, 40)),
            "0f000000000000006d532b090900002040fc54d94110283a02080188d80308");
  EXPECT_EQ(HexOf(ValuesRecord(kNow, 40, {{"a/b", "A figure", 0.5}})),
            "300000000000000095f5d05f0900002040fc54d94110282a230a210a03612f62150000003f4a150a"
            "090a077363616c6172731a084120666967757265a4b21bda");
  EXPECT_EQ(HexOf(TextRecord(kNow, "settings", "seed 1")),
            "2f000000000000006d5d1d500900002040fc54d9412a240a220a0873657474696e6773420c080712"
            "0042067365656420314a080a060a0474657874cf6c9806");
}

TEST_F(EventFileTest, LinesBecomePointsOfCurvesThatAreNamedAsFigures) {
  auto file = NewFile(*files_);
  file->TakeLine(kProgress);
  file->TakeLine(R"({"step": 60, "event": "lost", "member": "worker 1"})");
  file->TakeLine("no JSON");
  file->TakeLine(kEvaluated);
  file->TakeLine(kSet);
  EXPECT_EQ(file->TakeTrouble(), std::nullopt);
  const std::vector<std::string> records = RecordsIn(Read(kFirst));
  ASSERT_THAT(records, SizeIs(6));
  EXPECT_THAT(records[0], HasSubstr("brain.Event:2"));
  EXPECT_THAT(records[1], HasSubstr("seed 1"));
  // Points of an earlier process from step 40 on do not hold.
  EXPECT_EQ(records[2], RecordsIn(SessionRecord(kNow, 40)).front());
  EXPECT_THAT(records[3], HasSubstr("training_loss"));
  EXPECT_THAT(records[3], HasSubstr("learning_rate"));
  EXPECT_THAT(records[3], Not(HasSubstr("examples_per_second"))) << "null is no value";
  EXPECT_EQ(records[4],
            RecordsIn(ValuesRecord(
                          kNow, 80,
                          {{"evaluation/auc", "Figures of the last evaluation of each set", 0.75}}))
                .front());
  EXPECT_THAT(records[5], HasSubstr("evaluation/late/auc"));
}

TEST_F(EventFileTest, AJobThatWentBackDropsThePointsThatAreTrainedAgain) {
  auto file = NewFile(*files_);
  file->TakeLine(kProgress);
  file->TakeLine(R"({"step": 20, "event": "went_back", "from_step": 40})");
  file->TakeLine(kProgress);
  const std::vector<std::string> records = RecordsIn(Read(kFirst));
  ASSERT_THAT(records, SizeIs(6));
  EXPECT_EQ(records[4], RecordsIn(SessionRecord(kNow, 21)).front());
}

TEST_F(EventFileTest, AResumedRunGoesOnInAFileThatSortsBehind) {
  NewFile(*files_)->TakeLine(kProgress);
  const std::string before = Read(kFirst);
  NewFile(*files_)->TakeLine(kProgress);  // Within the same second.
  now_ -= 3600;                           // The machine's time went back.
  NewFile(*files_)->TakeLine(kProgress);
  EXPECT_THAT(*files_->List("out/tensorboard"), ElementsAre("events.out.tfevents.1700000000.hdps",
                                                            "events.out.tfevents.1700000001.hdps",
                                                            "events.out.tfevents.1700000002.hdps"));
  EXPECT_EQ(Read(kFirst), before);
}

TEST_F(EventFileTest, CutAtAnyByteItIsReadableUpToItsLastWholeRecord) {
  auto file = NewFile(*files_);
  file->TakeLine(kProgress);
  file->TakeLine(kEvaluated);
  const std::string whole = Read(kFirst);
  const std::vector<std::string> records = RecordsIn(whole);
  ASSERT_THAT(records, SizeIs(5));
  size_t end = 0, next = 0;  // `next` records end at or before the cut.
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    if (next < records.size() && cut == end + 12 + records[next].size() + 4) {
      end = cut;
      ++next;
    }
    const std::vector<std::string> read = RecordsIn(std::string_view(whole).substr(0, cut));
    ASSERT_EQ(read, std::vector(records.begin(), records.begin() + next)) << cut;
  }
  EXPECT_EQ(next, records.size());
}

TEST_F(EventFileTest, AFullDiskIsToldOnceAndAnotherFileGoesOn) {
  const auto clock = std::make_shared<SettableClock>();
  FaultFileOptions full;
  full.faults = {{FileFault::Kind::kFull, "tensorboard/*", 0, {1000, 1000, ""}}};
  files_ = NewFaultFileSystem(NewMemoryFileSystem(), full, clock);
  auto file = NewFile(*files_);
  file->TakeLine(kProgress);
  clock->now_ms += 1000;
  for (int i = 0; i < 3; ++i) file->TakeLine(kProgress);
  EXPECT_THAT(file->TakeTrouble().value_or(""), HasSubstr("No space left"));
  EXPECT_EQ(file->TakeTrouble(), std::nullopt);
  EXPECT_THAT(*files_->List("out/tensorboard"), SizeIs(1)) << "no beginnings of files are left";
  clock->now_ms += 1000;
  file->TakeLine(kEvaluated);
  EXPECT_EQ(file->TakeTrouble(), std::nullopt);
  EXPECT_THAT(RecordsIn(Read(kFirst)), SizeIs(4));
  const auto more = RecordsIn(Read("out/tensorboard/events.out.tfevents.1700000001.hdps"));
  ASSERT_THAT(more, SizeIs(4));
  EXPECT_THAT(more[3], HasSubstr("evaluation/auc"));
}

}  // namespace
}  // namespace hdps
