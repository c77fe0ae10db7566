// The seal of frames: beside libsodium's own construction, and what it notices.
#include "common/net/zmq/frame_seal.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "common/platform/random.h"

namespace hdps {
namespace {

using Parts = std::vector<std::vector<std::byte>>;

std::vector<std::span<const std::byte>> Spans(const Parts& parts) {
  return {parts.begin(), parts.end()};
}

SealKey KeyOf(Random& random) {
  SealKey key;
  for (std::byte& byte : key) byte = static_cast<std::byte>(random.Next());
  return key;
}

Parts RandomParts(Random& random) {
  Parts parts(1 + random.Below(11));
  for (auto& part : parts) {
    part.resize(random.Below(8) == 0 ? random.Below(5000) : random.Below(70));
    for (std::byte& byte : part) byte = static_cast<std::byte>(random.Next());
  }
  return parts;
}

// As the header describes it, in one piece.
SealTag AsSodiumHasIt(const SealKey& key, uint64_t counter, const Parts& parts) {
  std::vector<uint8_t> data;
  const auto add = [&](const void* bytes, size_t size) {
    data.insert(data.end(), static_cast<const uint8_t*>(bytes),
                static_cast<const uint8_t*>(bytes) + size);
  };
  uint64_t number = parts.size();
  add(&number, sizeof(number));
  for (const auto& part : parts) {
    number = part.size();
    add(&number, sizeof(number));
  }
  for (const auto& part : parts) add(part.data(), part.size());
  uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = {};
  std::memcpy(nonce + 4, &counter, sizeof(counter));
  SealTag tag;
  unsigned long long size = 0;
  crypto_aead_chacha20poly1305_ietf_encrypt(reinterpret_cast<uint8_t*>(tag.data()), &size, nullptr,
                                            0, data.data(), data.size(), nullptr, nonce,
                                            reinterpret_cast<const uint8_t*>(key.data()));
  EXPECT_EQ(size, tag.size());
  return tag;
}

TEST(FrameSeal, IsTheTagOfLibsodiumsAead) {
  constexpr int kFrames = 4000;
  Random random(7);
  for (int i = 0; i < kFrames; ++i) {
    const SealKey key = KeyOf(random);
    const Parts parts = RandomParts(random);
    const uint64_t counter = random.Next() >> random.Below(64);
    ASSERT_EQ(TagOf(key, counter, Spans(parts)), AsSodiumHasIt(key, counter, parts)) << i;
  }
  std::printf("[ measured ] seal: %d frames have the tag that libsodium's AEAD gives them\n",
              kFrames);
}

TEST(FrameSeal, EveryBitAndEveryBoundaryCounts) {
  Random random(8);
  const SealKey key = KeyOf(random);
  Parts parts = {
      std::vector<std::byte>(64), std::vector<std::byte>(21), {}, std::vector<std::byte>(33)};
  const FrameSeal seal = FrameSealer(5, key).Seal(Spans(parts));
  const auto accepted = [&](const SealKey& by, const FrameSeal& shown) {
    return SealChecker(5, by).Accept(shown, Spans(parts));
  };
  ASSERT_TRUE(accepted(key, seal));
  const auto flip = [](std::byte* bytes, size_t bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  };
  for (auto& part : parts) {
    for (size_t bit = 0; bit < 8 * part.size(); ++bit) {
      flip(part.data(), bit);
      EXPECT_FALSE(accepted(key, seal)) << bit;
      flip(part.data(), bit);
    }
  }
  for (size_t bit = 0; bit < 8 * sizeof(seal); ++bit) {
    FrameSeal other = seal;
    flip(reinterpret_cast<std::byte*>(&other), bit);
    EXPECT_FALSE(accepted(key, other)) << bit;
  }
  for (size_t bit = 0; bit < 8 * key.size(); ++bit) {
    SealKey other = key;
    flip(other.data(), bit);
    EXPECT_FALSE(accepted(other, seal)) << bit;
  }
  // All bytes are zeros: only where a part ends tells these from the sealed one.
  for (const auto& lengths : std::vector<std::vector<size_t>>{{64, 21, 33},
                                                              {64, 21, 1, 32},
                                                              {64, 20, 1, 33},
                                                              {64, 0, 21, 33},
                                                              {64, 21, 0, 33, 0},
                                                              {118},
                                                              {63, 22, 0, 33}}) {
    parts.assign(lengths.size(), {});
    for (size_t i = 0; i < lengths.size(); ++i) parts[i].resize(lengths[i]);
    EXPECT_FALSE(accepted(key, seal)) << testing::PrintToString(lengths);
  }
}

TEST(FrameSeal, NothingComesTwiceOrLate) {
  Random random(9);
  const SealKey key = KeyOf(random);
  const Parts parts = RandomParts(random);
  FrameSealer sealer(5, key);
  FrameSeal seals[5];
  for (FrameSeal& seal : seals) seal = sealer.Seal(Spans(parts));
  SealChecker checker(5, key);
  const auto accepted = [&](int i) { return checker.Accept(seals[i], Spans(parts)); };
  EXPECT_TRUE(accepted(0));
  EXPECT_FALSE(accepted(0)) << "twice";
  EXPECT_TRUE(accepted(2)) << "one was lost on the way";
  EXPECT_FALSE(accepted(1)) << "overtaken";
  FrameSeal forged = seals[3];
  forged.counter = ~uint64_t{0};
  EXPECT_FALSE(checker.Accept(forged, Spans(parts)));
  EXPECT_TRUE(accepted(3)) << "a forged counter moves nothing";
  EXPECT_TRUE(accepted(4));
}

TEST(FrameSeal, SecretsAreDrawn) {
  SealKey keys[2] = {};
  for (SealKey& key : keys) DrawSecret(key);
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(keys[0], SealKey());
}

}  // namespace
}  // namespace hdps
