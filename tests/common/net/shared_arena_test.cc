// Tests arenas between two sides in one process: space, order, loss, false claims, and release by
// many threads.
#include "common/net/shared/shared_arena.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <utility>

#include "common/base/bounded_queue.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr ArenaLabel kLabel{1, 2, 77};
constexpr size_t kBytes = 64 * kArenaChunkBytes;

// Returns `size` bytes that are unique to `number`.
std::vector<std::byte> BytesOf(uint64_t number, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(MixBits(number + i / 8));
  return bytes;
}

class SharedArenaTest : public testing::Test {
 protected:
  void SetUp() override {
    auto arena = SharedArena::Create(kLabel, kBytes);
    ASSERT_TRUE(arena.ok()) << arena.status().message();
    arena_ = *std::move(arena);
    auto view = SharedView::Open(arena_->place(), kLabel);
    ASSERT_TRUE(view.ok()) << view.status().message();
    view_ = *std::move(view);
  }
  SharedBlock PutOrDie(std::span<const std::byte> bytes) {
    SharedBlock block;
    EXPECT_TRUE(arena_->Put(bytes, &block));
    return block;
  }

  std::shared_ptr<SharedArena> arena_;
  std::shared_ptr<SharedView> view_;
};

TEST_F(SharedArenaTest, LendsBytesInPlaceAndTakesThemHome) {
  for (const size_t size :
       {size_t{1}, kArenaChunkBytes - 1, kArenaChunkBytes, kArenaChunkBytes + 1, kBytes}) {
    const std::vector<std::byte> bytes = BytesOf(size, size);
    Result<Buffer> got = view_->Take(PutOrDie(bytes));
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->size(), size);
    EXPECT_EQ(std::memcmp(got->data(), bytes.data(), size), 0);
    EXPECT_EQ(arena_->blocks_out(), 1u);
    const Buffer second_holder = *got;
    *got = Buffer();
    EXPECT_EQ(arena_->blocks_out(), 1u) << "somebody still holds it";
    EXPECT_EQ(second_holder.data()[0], bytes[0]);
  }
  EXPECT_EQ(arena_->blocks_out(), 0u);
}

TEST_F(SharedArenaTest, IsFullUntilSomethingComesHome) {
  const std::vector<std::byte> quarter = BytesOf(1, kBytes / 4);
  std::deque<Buffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(*view_->Take(PutOrDie(quarter)));
  SharedBlock block;
  EXPECT_FALSE(arena_->Put(quarter, &block));
  EXPECT_FALSE(arena_->Put(BytesOf(1, 1), &block));
  held.erase(held.begin() + 1);
  EXPECT_FALSE(arena_->Put(BytesOf(1, kBytes / 4 + 1), &block));
  EXPECT_TRUE(arena_->Put(quarter, &block));
  EXPECT_EQ(block.offset, kBytes / 4);
  held.clear();
  EXPECT_TRUE(view_->Take(block).ok());
  // Blocks released in any order become one piece again.
  EXPECT_TRUE(arena_->Put(BytesOf(2, kBytes), &block));
}

TEST_F(SharedArenaTest, WhatWasLostOnTheWayComesHomeOnceLaterBlocksArrive) {
  const SharedBlock lost = PutOrDie(BytesOf(1, 100));
  const SharedBlock later = PutOrDie(BytesOf(2, 100));
  EXPECT_EQ(arena_->blocks_out(), 2u);
  const Result<Buffer> got = view_->Take(later);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(arena_->blocks_out(), 1u) << "the later one is held, the earlier one cannot come";
  EXPECT_EQ(view_->Take(lost).status().code(), Code::kCorruption);
}

TEST_F(SharedArenaTest, AMarkFreesAllThatWasLostBeforeIt) {
  const Result<Buffer> held = view_->Take(PutOrDie(BytesOf(1, 100)));
  PutOrDie(BytesOf(2, kBytes - kArenaChunkBytes));
  const uint64_t mark = arena_->NextMark();
  SharedBlock block;
  EXPECT_FALSE(arena_->Put(BytesOf(3, 1), &block));
  view_->Pass(mark);
  const SharedBlock after = PutOrDie(BytesOf(3, 1));
  EXPECT_EQ(arena_->blocks_out(), 2u) << "the one that is held, and the new one";
  EXPECT_TRUE(view_->Take(after).ok());
}

TEST_F(SharedArenaTest, TakesBackWhatWasNotSent) {
  const SharedBlock block = PutOrDie(BytesOf(1, kBytes));
  arena_->TakeBack(block);
  EXPECT_EQ(arena_->blocks_out(), 0u);
  arena_->TakeBack(block);
  PutOrDie(BytesOf(1, kBytes));
}

TEST_F(SharedArenaTest, WhatIsMadeThereIsLentInPlaceAndStaysWhileItIsHeld) {
  std::span<std::byte> filled;
  Buffer made = arena_->Make(5000, &filled);
  ASSERT_EQ(filled.size(), 5000u);
  const std::vector<std::byte> bytes = BytesOf(1, 5000);
  std::copy(bytes.begin(), bytes.end(), filled.begin());
  SharedBlock block;
  ASSERT_TRUE(arena_->Lend(made, &block));
  EXPECT_FALSE(arena_->Lend(made, &block)) << "it is out already";
  Result<Buffer> got = view_->Take(block);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(std::memcmp(got->data(), bytes.data(), bytes.size()), 0);
  *got = Buffer();
  EXPECT_EQ(arena_->blocks_out(), 1u) << "the sender may send it again";
  ASSERT_TRUE(arena_->Lend(made, &block));
  got = view_->Take(block);
  ASSERT_TRUE(got.ok());
  made = Buffer();
  EXPECT_EQ(arena_->blocks_out(), 1u) << "the receiver holds it";
  EXPECT_EQ(std::memcmp(got->data(), bytes.data(), bytes.size()), 0);
  *got = Buffer();
  EXPECT_EQ(arena_->blocks_out(), 0u);
}

TEST_F(SharedArenaTest, WhatWasMadeAndNotSentGoesHome) {
  std::span<std::byte> filled;
  Buffer made = arena_->Make(kBytes, &filled);
  EXPECT_EQ(made.size(), kBytes);
  EXPECT_TRUE(arena_->Make(1, &filled).empty()) << "there is no room";
  made = Buffer();
  EXPECT_EQ(arena_->blocks_out(), 0u);
  made = arena_->Make(kBytes, &filled);
  SharedBlock block;
  ASSERT_TRUE(arena_->Lend(made, &block));
  arena_->TakeBack(block);
  EXPECT_TRUE(arena_->Lend(made, &block)) << "it was not sent after all";
  arena_->TakeBack(block);
  made = Buffer();
  EXPECT_EQ(arena_->blocks_out(), 0u);
  EXPECT_FALSE(arena_->Lend(Buffer::CopyOf(BytesOf(1, 100)), &block)) << "made elsewhere";
}

TEST_F(SharedArenaTest, RefusesForgedBlocks) {
  const SharedBlock honest = PutOrDie(BytesOf(1, 5000));
  const auto forged = [&](uint64_t offset, uint64_t bytes, uint64_t sequence) {
    return view_->Take({kLabel.secret, offset, bytes, sequence}).status().code();
  };
  constexpr uint64_t kFar = ~uint64_t{0};
  EXPECT_EQ(forged(kBytes, 1, 9), Code::kCorruption);
  EXPECT_EQ(forged(0, kBytes + 1, 9), Code::kCorruption);
  EXPECT_EQ(forged(kArenaChunkBytes, kBytes, 9), Code::kCorruption);
  EXPECT_EQ(forged(0, 0, 9), Code::kCorruption);
  EXPECT_EQ(forged(8, 8, 9), Code::kCorruption);
  EXPECT_EQ(forged(kFar - kArenaChunkBytes + 1, kArenaChunkBytes, 9), Code::kCorruption);
  EXPECT_EQ(forged(0, kFar, 9), Code::kCorruption);
  EXPECT_EQ(forged(0, 100, 0), Code::kCorruption) << "no block has number 0";
  EXPECT_TRUE(view_->Take(honest).ok());
  EXPECT_EQ(view_->Take(honest).status().code(), Code::kCorruption) << "twice";
}

TEST_F(SharedArenaTest, BytesOutliveTheArenaAndTheView) {
  const std::vector<std::byte> bytes = BytesOf(1, 5000);
  const Buffer held = *view_->Take(PutOrDie(bytes));
  arena_.reset();
  view_.reset();
  EXPECT_EQ(std::memcmp(held.data(), bytes.data(), bytes.size()), 0);
}

TEST_F(SharedArenaTest, OpensNothingButThePeersArena) {
  const auto open = [](const SharedPlace& place, const ArenaLabel& label) {
    return SharedView::Open(place, label).status().code();
  };
  const SharedPlace place = arena_->place();
  EXPECT_EQ(open(place, kLabel), Code::kOk);
  EXPECT_EQ(open(place, {1, 2, 78}), Code::kInvalidArgument);
  EXPECT_EQ(open(place, {1, 3, 77}), Code::kInvalidArgument) << "for somebody else";
  EXPECT_EQ(open({place.pid, place.fd, place.bytes - 4096}, kLabel), Code::kInvalidArgument);
  EXPECT_EQ(open({place.pid, place.fd, 0}, kLabel), Code::kInvalidArgument);
  EXPECT_EQ(open({place.pid, place.fd, ~uint64_t{0}}, kLabel), Code::kInvalidArgument);
  EXPECT_EQ(open({1u << 30, place.fd, place.bytes}, kLabel), Code::kInvalidArgument);
  EXPECT_EQ(open({place.pid, 0, place.bytes}, kLabel), Code::kInvalidArgument);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_EQ(open({place.pid, static_cast<uint64_t>(pipes[0]), place.bytes}, kLabel),
            Code::kInvalidArgument);
  // Memory with the same name that its owner could shrink under the reader.
  const int shrinks = memfd_create("hdps_arena", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(shrinks, static_cast<off_t>(place.bytes)), 0);
  EXPECT_EQ(open({place.pid, static_cast<uint64_t>(shrinks), place.bytes}, kLabel),
            Code::kInvalidArgument);
  for (const int fd : {pipes[0], pipes[1], shrinks}) close(fd);
}

// One thread lends, one takes and checks, and three release in no particular order.
TEST_F(SharedArenaTest, ManyThreadsLetGoWhileOneLends) {
  constexpr uint64_t kRounds = 3000;
  BoundedQueue<std::pair<uint64_t, SharedBlock>> sent(64);
  BoundedQueue<Buffer> taken(8);
  const auto taker = StartThread("taker", [&] {
    for (uint64_t i = 0; i < kRounds; ++i) {
      const auto [number, block] = *sent.Pop();
      Result<Buffer> got = view_->Take(block);
      ASSERT_TRUE(got.ok()) << got.status().message();
      const std::vector<std::byte> expected = BytesOf(number, got->size());
      ASSERT_EQ(std::memcmp(got->data(), expected.data(), expected.size()), 0) << number;
      taken.Push(*std::move(got));
    }
    taken.Close();
  });
  std::vector<std::unique_ptr<Thread>> holders;
  for (int t = 0; t < 3; ++t) {
    holders.push_back(StartThread("holder", [&] {
      std::deque<Buffer> held;
      while (std::optional<Buffer> one = taken.Pop()) {
        held.push_back(*std::move(one));
        if (held.size() > 1) held.pop_front();
      }
    }));
  }
  Random random(1);
  for (uint64_t i = 0; i < kRounds; ++i) {
    const std::vector<std::byte> bytes = BytesOf(i, 1 + random.Below(3 * kArenaChunkBytes));
    SharedBlock block;
    while (!arena_->Put(bytes, &block)) {
    }
    sent.Push({i, block});
  }
  taker->Join();
  for (const auto& holder : holders) holder->Join();
  EXPECT_EQ(arena_->blocks_out(), 0u);
}

}  // namespace
}  // namespace hdps
