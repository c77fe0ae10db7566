// The encryption of frames: beside libsodium's own AEADs, what it notices, and when keys change.
#include "common/net/zmq/frame_cipher.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "common/platform/random.h"

namespace hdps {
namespace {

using Parts = std::vector<std::vector<std::byte>>;
constexpr uint64_t kSession = 5;

SecretKey KeyFrom(Random& random) {
  SecretKey key;
  for (std::byte& byte : key.bytes()) byte = static_cast<std::byte>(random.Next());
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

struct Encrypted {
  Parts parts;
  AuthTag tag;
};

Encrypted EncryptedBy(FrameEncryptor& encryptor, const Parts& parts) {
  Encrypted encrypted{parts, {}};
  std::vector<PartToEncrypt> places;
  for (size_t i = 0; i < parts.size(); ++i) places.push_back({parts[i], encrypted.parts[i].data()});
  encrypted.tag = encryptor.Encrypt(places);
  return encrypted;
}

// Nothing: it was refused.
std::optional<Parts> DecryptedBy(FrameDecryptor& decryptor, Encrypted encrypted) {
  std::vector<std::span<std::byte>> places(encrypted.parts.begin(), encrypted.parts.end());
  if (!decryptor.Decrypt(encrypted.tag, places)) return {};
  return encrypted.parts;
}

class FrameSeal : public testing::TestWithParam<AeadKind> {
 protected:
  FrameEncryptor Encryptor(const SecretKey& key, KeyLimits limits = {}) const {
    return FrameEncryptor(kSession, GetParam(), key, limits);
  }
  FrameDecryptor Decryptor(const SecretKey& key) const {
    return FrameDecryptor(kSession, GetParam(), key);
  }
};

// Encrypts the parts as one message with libsodium, as frame_cipher.h describes it.
Encrypted AsSodiumHasIt(AeadKind kind, const SecretKey& key, uint64_t counter, const Parts& parts) {
  std::vector<uint8_t> beside, plain;
  const auto add = [](std::vector<uint8_t>& to, const void* bytes, size_t size) {
    to.insert(to.end(), static_cast<const uint8_t*>(bytes),
              static_cast<const uint8_t*>(bytes) + size);
  };
  uint64_t number = parts.size();
  add(beside, &number, sizeof(number));
  for (const auto& part : parts) {
    number = part.size();
    add(beside, &number, sizeof(number));
    add(plain, part.data(), part.size());
  }
  uint8_t nonce[12] = {}, derived[32];
  std::memcpy(nonce + 4, &counter, sizeof(counter));
  crypto_kdf_derive_from_key(derived, sizeof(derived), counter >> 32, "hdpsdata",
                             reinterpret_cast<const uint8_t*>(key.bytes().data()));
  std::vector<uint8_t> all(plain.size() + 16);
  unsigned long long size = 0;
  const auto encrypt = kind == AeadKind::kAes256Gcm ? crypto_aead_aes256gcm_encrypt
                                                    : crypto_aead_chacha20poly1305_ietf_encrypt;
  encrypt(all.data(), &size, plain.data(), plain.size(), beside.data(), beside.size(), nullptr,
          nonce, derived);
  EXPECT_EQ(size, all.size());
  Encrypted encrypted{parts, {kSession, counter, {}}};
  size_t at = 0;
  for (auto& part : encrypted.parts) {
    if (!part.empty()) std::memcpy(part.data(), all.data() + at, part.size());
    at += part.size();
  }
  std::memcpy(encrypted.tag.tag.data(), all.data() + at, 16);
  return encrypted;
}

TEST_P(FrameSeal, IsThatOfLibsodium) {
  constexpr int kFrames = 4000;
  if (GetParam() == AeadKind::kAes256Gcm && OwnAead() != GetParam()) {
    GTEST_SKIP() << "this machine has no instructions for AES, and libsodium no other";
  }
  Random random(7);
  for (int i = 0; i < kFrames; ++i) {
    const SecretKey key = KeyFrom(random);
    const Parts parts = RandomParts(random);
    FrameEncryptor encryptor = Encryptor(key, {1 + random.Below(3), 1 << 20});
    FrameDecryptor decryptor = Decryptor(key);
    uint64_t last = 0;
    for (int frame = 0; frame < 4; ++frame) {
      const Encrypted encrypted = EncryptedBy(encryptor, parts);
      ASSERT_GT(encrypted.tag.counter, last);
      last = encrypted.tag.counter;
      const Encrypted expected = AsSodiumHasIt(GetParam(), key, last, parts);
      ASSERT_EQ(encrypted.parts, expected.parts) << i;
      ASSERT_EQ(encrypted.tag.tag, expected.tag.tag) << i;
      ASSERT_EQ(DecryptedBy(decryptor, encrypted), parts) << i;
    }
  }
  std::printf("[ measured ] encryption: %d frames are encrypted as libsodium's AEAD does\n",
              4 * kFrames);
}

TEST_P(FrameSeal, EveryBitAndEveryBoundaryCounts) {
  Random random(8);
  const SecretKey key = KeyFrom(random);
  const Parts parts = {
      std::vector<std::byte>(64), std::vector<std::byte>(21), {}, std::vector<std::byte>(33)};
  FrameEncryptor encryptor = Encryptor(key);
  Encrypted encrypted = EncryptedBy(encryptor, parts);
  const auto accepted = [&](const SecretKey& by, const Encrypted& shown) {
    FrameDecryptor decryptor = Decryptor(by);
    return DecryptedBy(decryptor, shown).has_value();
  };
  ASSERT_TRUE(accepted(key, encrypted));
  const auto flip = [](std::byte* bytes, size_t bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  };
  for (auto& part : encrypted.parts) {
    for (size_t bit = 0; bit < 8 * part.size(); ++bit) {
      flip(part.data(), bit);
      EXPECT_FALSE(accepted(key, encrypted)) << bit;
      flip(part.data(), bit);
    }
  }
  for (size_t bit = 0; bit < 8 * sizeof(AuthTag); ++bit) {
    Encrypted other = encrypted;
    flip(reinterpret_cast<std::byte*>(&other.tag), bit);
    EXPECT_FALSE(accepted(key, other)) << bit;
  }
  for (size_t bit = 0; bit < 8 * sizeof(SecretKey); ++bit) {
    SecretKey other = key;
    flip(other.bytes().data(), bit);
    EXPECT_FALSE(accepted(other, encrypted)) << bit;
  }
  // The same bytes in the same order: only where a part ends tells these from the encrypted one.
  std::vector<std::byte> all;
  for (const auto& part : encrypted.parts) all.insert(all.end(), part.begin(), part.end());
  for (const auto& lengths : std::vector<std::vector<size_t>>{{64, 21, 33},
                                                              {64, 21, 1, 32},
                                                              {64, 20, 1, 33},
                                                              {64, 0, 21, 33},
                                                              {64, 21, 0, 33, 0},
                                                              {118},
                                                              {63, 22, 0, 33}}) {
    Encrypted other{{}, encrypted.tag};
    auto at = all.begin();
    for (const size_t length : lengths) {
      other.parts.emplace_back(at, at + static_cast<ptrdiff_t>(length));
      at += static_cast<ptrdiff_t>(length);
    }
    ASSERT_EQ(at, all.end());
    EXPECT_FALSE(accepted(key, other)) << testing::PrintToString(lengths);
  }
}

TEST_P(FrameSeal, NothingComesTwiceOrLate) {
  Random random(9);
  const SecretKey key = KeyFrom(random);
  const Parts parts = RandomParts(random);
  FrameEncryptor encryptor = Encryptor(key, {2, 1 << 20});  // So these are under three keys.
  Encrypted encrypted[5];
  for (Encrypted& one : encrypted) one = EncryptedBy(encryptor, parts);
  FrameDecryptor decryptor = Decryptor(key);
  const auto accepted = [&](int i) { return DecryptedBy(decryptor, encrypted[i]).has_value(); };
  EXPECT_TRUE(accepted(0));
  EXPECT_FALSE(accepted(0)) << "twice";
  EXPECT_TRUE(accepted(2)) << "one was lost on the way";
  EXPECT_FALSE(accepted(1)) << "overtaken";
  Encrypted forged = encrypted[3];
  forged.tag.counter = ~uint64_t{0};
  EXPECT_FALSE(DecryptedBy(decryptor, forged).has_value());
  EXPECT_TRUE(accepted(3)) << "a forged counter moves nothing";
  EXPECT_TRUE(accepted(4));
}

TEST_P(FrameSeal, TheFirstCounterShownMayBeAny) {
  const SecretKey key = SecretKey::Drawn();
  for (const uint64_t counter : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    FrameDecryptor decryptor = Decryptor(key);
    EXPECT_FALSE(DecryptedBy(decryptor, {{std::vector<std::byte>(8)}, {kSession, counter, {}}}));
  }
}

// ---- Keys.

TEST_P(FrameSeal, ANewKeyIsTakenBeforeTheOldOneHasEncryptedTooMuch) {
  const SecretKey key = SecretKey::Drawn();
  const auto keys_of = [&](KeyLimits limits, const std::vector<size_t>& frames) {
    FrameEncryptor encryptor = Encryptor(key, limits);
    std::vector<uint64_t> keys;
    for (const size_t bytes : frames) {
      keys.push_back(EncryptedBy(encryptor, {std::vector<std::byte>(bytes)}).tag.counter >> 32);
    }
    return keys;
  };
  using Keys = std::vector<uint64_t>;
  EXPECT_EQ(keys_of({2, 1000}, {1, 1, 1, 1, 1}), (Keys{0, 0, 1, 1, 2})) << "frames";
  EXPECT_EQ(keys_of({9, 100}, {60, 40, 1, 99, 100, 1}), (Keys{0, 0, 1, 1, 2, 3})) << "bytes";
  EXPECT_EQ(keys_of({}, {60, 40, 1}), (Keys{0, 0, 0}));
}

INSTANTIATE_TEST_SUITE_P(By, FrameSeal,
                         testing::Values(AeadKind::kAes256Gcm, AeadKind::kChaCha20Poly1305),
                         [](const auto& kind) {
                           return kind.param == AeadKind::kAes256Gcm ? "Aes" : "ChaCha";
                         });

TEST(SealCounters, OnlyGrow) {
  EXPECT_EQ(CounterAfter(0, false), 1u);
  EXPECT_EQ(CounterAfter(7, true), uint64_t{1} << 32);
  EXPECT_EQ(CounterAfter((uint64_t{3} << 32) + 9, true), uint64_t{4} << 32);
  EXPECT_DEATH(CounterAfter(~uint64_t{0}, false), "twice with one key");
  EXPECT_DEATH(CounterAfter(~uint64_t{0} - 5, true), "twice with one key");
  EXPECT_DEATH(CounterAfter((uint64_t{1} << 32) - 1, false), "too many frames under one key");
}

TEST(SecretKeys, AreDrawnAndWiped) {
  EXPECT_FALSE(std::ranges::equal(SecretKey::Drawn().bytes(), SecretKey::Drawn().bytes()));
  EXPECT_FALSE(std::ranges::equal(SecretKey::Drawn().bytes(), SecretKey().bytes()));
  alignas(SecretKey) std::byte place[sizeof(SecretKey)];
  auto* const key = new (place) SecretKey(SecretKey::Drawn());
  EXPECT_NE(std::vector(place, place + sizeof(place)), std::vector<std::byte>(sizeof(place)));
  key->~SecretKey();
  EXPECT_EQ(std::vector(place, place + sizeof(place)), std::vector<std::byte>(sizeof(place)));
}

}  // namespace
}  // namespace hdps
