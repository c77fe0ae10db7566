// A tag over all parts of a frame, by which its receiver knows that they are as they were sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hdps {

inline constexpr size_t kSealTagBytes = 16;
using SealKey = std::array<std::byte, 32>;
using SealTag = std::array<std::byte, kSealTagBytes>;

// The last part of a sealed frame.
struct FrameSeal {
  uint64_t session = 0;
  uint64_t counter = 0;  // Of one direction of one session: from 1, and never the same again.
  SealTag tag{};
};
static_assert(sizeof(FrameSeal) == 32);

// From the system's random numbers; nobody else has them.
void DrawSecret(std::span<std::byte> bytes);

// The tag of AEAD_CHACHA20_POLY1305 (RFC 8439) under `key`, with `counter` as nonce (four zero
// bytes, then its eight, little-endian), without plaintext. What is authenticated is the number of
// parts and the length of each, as eight bytes each, little-endian, and then all parts.
SealTag TagOf(const SealKey& key, uint64_t counter,
              std::span<const std::span<const std::byte>> parts);

// One direction of a session as its sender has it.
//
// Invariant: no counter is used twice with one key.
class FrameSealer {
 public:
  FrameSealer(uint64_t session, const SealKey& key) : session_(session), key_(key) {}
  FrameSeal Seal(std::span<const std::span<const std::byte>> parts);

 private:
  uint64_t session_;
  SealKey key_;
  uint64_t counter_ = 0;
};

// The same direction as its receiver has it.
//
// Invariant: of what was accepted, each had a larger counter than the one before: nothing twice,
// and nothing behind what was sent after it. Some may be missing.
class SealChecker {
 public:
  SealChecker(uint64_t session, const SealKey& key) : session_(session), key_(key) {}
  // Takes time that does not depend on what the tag should have been.
  bool Accept(const FrameSeal& seal, std::span<const std::span<const std::byte>> parts);

 private:
  uint64_t session_;
  SealKey key_;
  uint64_t last_ = 0;
};

}  // namespace hdps
