// Tests the reuse of memory for long sections.
#include <gtest/gtest.h>

#include <cstring>

#include "common/net/section_allocator.h"

namespace hdps {
namespace {

constexpr PeerId kPeer{7};
constexpr size_t kLong = size_t{9} << 20;

Buffer Filled(SectionAllocator& sections, size_t size, int value) {
  std::span<std::byte> bytes;
  Buffer made = sections.Make(kPeer, size, &bytes);
  EXPECT_EQ(bytes.size(), size);
  EXPECT_EQ(made.data(), bytes.data());
  std::memset(bytes.data(), value, bytes.size());
  return made;
}

TEST(KeptSectionsTest, MemoryIsUsedAgainOnceNobodyHoldsIt) {
  const auto sections = NewKeptSections();
  Buffer first = Filled(*sections, kLong, 1);
  const std::byte* const place = first.data();
  Buffer holder = first;
  first = Buffer();
  EXPECT_NE(Filled(*sections, kLong, 2).data(), place) << "somebody still reads it";
  EXPECT_EQ(holder.bytes().back(), std::byte{1});
  // Reuses the memory of the one that was freed.
  const Buffer second = Filled(*sections, kLong, 3);
  holder = Buffer();
  EXPECT_EQ(Filled(*sections, kLong + kLong / 20, 4).data(), place) << "a little longer";
  EXPECT_EQ(second.bytes().front(), std::byte{3});
}

TEST(KeptSectionsTest, FarShorterOnesGetTheirOwn) {
  const auto sections = NewKeptSections();
  const std::byte* const place = Filled(*sections, 4 * kLong, 1).data();
  const Buffer own = Filled(*sections, kLong, 2), small = Filled(*sections, 64, 3);
  EXPECT_NE(own.data(), place);
  EXPECT_EQ(Filled(*sections, 4 * kLong, 4).data(), place);
  EXPECT_EQ(small.bytes().back(), std::byte{3});
}

TEST(KeptSectionsTest, WhatWasMadeMayOutliveIt) {
  auto sections = NewKeptSections();
  const Buffer made = Filled(*sections, kLong, 5);
  sections.reset();
  EXPECT_EQ(made.bytes().back(), std::byte{5});
}

}  // namespace
}  // namespace hdps
