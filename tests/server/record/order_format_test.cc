// Tests the bytes of a record: they keep every item, and no bytes do harm.
#include "server/record/order_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kJob = 0xfedcba9876543210u;

std::string Bytes(const std::vector<std::vector<OrderItem>>& blocks) {
  std::string bytes = OrderEncoder::Header({kJob, Mode::kSsp});
  OrderEncoder encoder;
  for (const std::vector<OrderItem>& block : blocks) {
    for (const OrderItem& item : block) encoder.Add(item);
    bytes += encoder.TakeBlock();
  }
  return bytes;
}

Result<OrderFile> Decode(const std::string& bytes) {
  return DecodeOrderFile(std::as_bytes(std::span(bytes)), "a.order");
}

// Entries of all forms, with steps that jump, and workers beyond the short ones.
std::vector<OrderItem> Entries(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<OrderItem> items;
  std::vector<Clock> steps(20, 0);
  for (size_t i = 0; i < count; ++i) {
    OrderEntry entry;
    entry.kind = static_cast<OrderKind>(random.Below(5));
    entry.worker = {static_cast<uint32_t>(random.Below(steps.size()))};
    Clock& step = steps[entry.worker.value];
    const uint64_t kind = random.Below(10);
    step = kind == 0 ? static_cast<Clock>(random.Below(1u << 30)) : step + (kind < 4 ? 1 : 0);
    entry.step = step;
    if (random.Below(8) == 0) entry.part = static_cast<uint32_t>(random.Below(300));
    items.emplace_back(entry);
  }
  return items;
}

TEST(OrderFormatTest, EveryItemSurvivesTheTrip) {
  const ViewMark view{{7}, 300, {{0}, {1}, {1}, {200}}, {{1}}};
  const DigestMark digest{{std::numeric_limits<uint64_t>::max(), 5}, 1234567, true};
  const std::vector<OrderItem> entries = Entries(1, 5000);
  std::vector<OrderItem> marks = {view, LoadMark{40}, GroupMark{{3}}, digest};
  const Result<OrderFile> file = Decode(Bytes({marks, entries}));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->header.job_digest, kJob);
  EXPECT_EQ(file->header.mode, Mode::kSsp);
  EXPECT_FALSE(file->cut);
  ASSERT_EQ(file->items.size(), marks.size() + entries.size());
  const auto& seen = std::get<ViewMark>(file->items[0]);
  EXPECT_EQ(seen.view, view.view);
  EXPECT_EQ(seen.workers, view.workers);
  EXPECT_EQ(seen.owner, view.owner);
  EXPECT_EQ(seen.led, view.led);
  EXPECT_EQ(std::get<LoadMark>(file->items[1]).clock, 40);
  EXPECT_EQ(std::get<GroupMark>(file->items[2]).group, ServerId{3});
  EXPECT_EQ(std::get<DigestMark>(file->items[3]).sum, digest.sum);
  EXPECT_EQ(std::get<DigestMark>(file->items[3]).clock, digest.clock);
  EXPECT_TRUE(std::get<DigestMark>(file->items[3]).whole);
  for (size_t i = 0; i < entries.size(); ++i) {
    ASSERT_EQ(std::get<OrderEntry>(file->items[marks.size() + i]), std::get<OrderEntry>(entries[i]))
        << i;
  }
}

TEST(OrderFormatTest, AStepOfAWorkerTakesThreeBytesAtAServer) {
  OrderEncoder encoder;
  for (Clock step = 0; step < 1000; ++step) {
    for (const uint32_t worker : {0, 1, 2}) {
      for (const OrderKind kind : {OrderKind::kTrainPull, OrderKind::kPush, OrderKind::kAdvance}) {
        encoder.Add(OrderEntry{kind, {worker}, step, 0});
      }
    }
  }
  EXPECT_EQ(encoder.size(), 9000u);
}

TEST(OrderFormatTest, ATornTailIsCut) {
  const std::vector<OrderItem> first = Entries(2, 100), second = Entries(3, 100);
  const std::string whole = Bytes({first, second});
  const size_t end_of_first = Bytes({first}).size();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<OrderFile> file = Decode(whole.substr(0, size));
    ASSERT_TRUE(file.ok()) << size << ": " << file.status().message();
    EXPECT_EQ(file->items.size(), size < end_of_first ? 0 : first.size()) << size;
    EXPECT_EQ(file->cut, size != 32 && size != end_of_first) << size;
  }
}

TEST(OrderFormatTest, DamagedBytesAreRefusedWithTheirPlace) {
  const std::string whole = Bytes({Entries(4, 50), Entries(5, 50)});
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    const Result<OrderFile> file = Decode(damaged);
    // A length that reaches behind the end looks like a torn tail.
    if (file.ok()) {
      EXPECT_TRUE(file->cut) << at;
      continue;
    }
    EXPECT_EQ(file.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr("a.order: "));
  }
}

TEST(OrderFormatTest, OtherFilesAndVersionsAreToldApart) {
  EXPECT_THAT(Decode("a log\n").status().message(), HasSubstr("no record"));
  std::string other = Bytes({});
  other[8] = 2;
  EXPECT_THAT(Decode(other).status().message(), HasSubstr("version 2, this program reads 1"));
}

// Bytes as an attacker would give them: whole blocks with right checksums and any contents.
TEST(OrderFormatTest, AnyBytesInABlockDoNoHarm) {
  Random random(6);
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string contents;
    for (uint64_t i = 0, size = 1 + random.Below(40); i < size; ++i) {
      contents.push_back(static_cast<char>(random.Below(256)));
    }
    std::string bytes = OrderEncoder::Header({kJob, Mode::kAsync});
    const auto checksum = static_cast<uint32_t>(HashBytes(std::as_bytes(std::span(contents))));
    for (const uint64_t number : {uint64_t{contents.size()}, uint64_t{checksum}}) {
      for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
    }
    const Result<OrderFile> file = Decode(bytes + contents);
    refused += !file.ok();
    EXPECT_LE(file.ok() ? file->items.size() : 0, contents.size());
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace hdps
