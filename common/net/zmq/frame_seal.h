// The seal of a frame: all its parts encrypted by an AEAD, and the tag by which its receiver knows
// that they are as they were sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/net/frame.h"

struct evp_cipher_ctx_st;

namespace hdps {

// Both have keys of 32 bytes, nonces of 12 and tags of 16.
enum class AeadKind : uint8_t { kAes256Gcm, kChaCha20Poly1305 };
// AES where this machine has instructions for it; else ChaCha20, which is as fast without any and
// takes the same time whatever the key is.
AeadKind OwnAead();

// The bytes of a key, which are wiped where they are let go.
//
// Invariant: they lie in this object and in copies of it alone.
class SecretKey {
 public:
  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey() { Wipe(bytes_); }

  static SecretKey Drawn();  // From the system's random numbers; nobody else has it.
  std::span<const std::byte, 32> bytes() const { return bytes_; }
  std::span<std::byte, 32> bytes() { return bytes_; }
  // Overwrites bytes in a way that no compiler leaves out.
  static void Wipe(std::span<std::byte> bytes);

 private:
  std::array<std::byte, 32> bytes_{};
};

// A number that was drawn like a key.
uint64_t DrawNumber();

// The last part of a sealed frame, in the clear.
struct AuthTag {
  uint64_t session = 0;
  // Of one direction of one session: it only grows. Its upper 32 bits number the key, its lower 32
  // the frames under that key.
  uint64_t counter = 0;
  std::array<std::byte, 16> tag{};
};
static_assert(sizeof(AuthTag) == 32);

// How much is sealed under one key before the next one is taken.
struct KeyLimits {
  // NIST SP 800-38D, 8.3: a key of GCM has at most 2^32 invocations, unless all nonces are made of
  // a counter. Ours are, and we stay below it all the same.
  uint64_t frames = (uint64_t{1} << 32) - 1;
  // RFC 8446, 5.5: 2^24.5 records of 16 KiB, which are 2^38.5 bytes, leave whoever tells GCM from
  // random bytes an advantage of 2^-57.
  uint64_t bytes = uint64_t{1} << 38;
};
// NIST SP 800-38D, 5.2.1.1: one invocation encrypts at most 2^39 - 256 bits.
static_assert((2 + kFrameSectionsMax) * kFrameBytesMax < (uint64_t{1} << 36) - 32);

// The AEAD of one direction of a session: key number n is derived from the key that was exchanged
// (crypto_kdf of libsodium, BLAKE2b), the nonce is four zero bytes and the counter, little-endian;
// what is authenticated beside the parts is their number and the length of each, as eight bytes
// each, little-endian. The parts are encrypted one behind the other, as if they were one.
class FrameCipher {
 public:
  enum class Way : int { kOpen = 0, kSeal = 1 };
  FrameCipher(AeadKind kind, const SecretKey& key, Way way);

  // Frame `counter` with parts of these lengths begins.
  void Begin(uint64_t counter, std::span<const uint64_t> lengths);
  // The next bytes; `from` and `to` may be the same.
  void Next(const std::byte* from, std::byte* to, size_t size);
  std::array<std::byte, 16> End();                      // Requires: kSeal.
  bool EndsWith(const std::array<std::byte, 16>& tag);  // Requires: kOpen.

 private:
  void TakeKey(uint32_t number);

  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;  // Wipes the key in it.
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  AeadKind kind_;
  Way way_;
  SecretKey key_;                       // Of which those in use are derived.
  std::optional<uint32_t> key_number_;  // Of the key in `context_`.
};

// A part before it is sealed, and where its sealed bytes belong; both may be the same place.
struct PartToSeal {
  std::span<const std::byte> from;
  std::byte* to;
};

// The counter behind `last`: the next frame under the same key, or the first under the next key. It
// is above `last`: CHECK, so that none is ever used twice.
uint64_t CounterAfter(uint64_t last, bool next_key);

// One direction of a session as its sender has it.
//
// Invariant: no counter is used twice, and no key beyond its limits.
class FrameSealer {
 public:
  FrameSealer(uint64_t session, AeadKind kind, const SecretKey& key, KeyLimits limits = {})
      : session_(session), limits_(limits), cipher_(kind, key, FrameCipher::Way::kSeal) {}
  AuthTag Seal(std::span<const PartToSeal> parts);

 private:
  uint64_t session_;
  KeyLimits limits_;
  FrameCipher cipher_;
  uint64_t last_ = 0;                              // The counter of the last frame; 0: none.
  uint64_t frames_of_key_ = 0, bytes_of_key_ = 0;  // Sealed under the key of now.
};

// The same direction as its receiver has it.
//
// Invariant: of what was accepted, each had a larger counter than the one before: nothing twice,
// and nothing behind what was sent after it. Some may be missing.
class FrameOpener {
 public:
  FrameOpener(uint64_t session, AeadKind kind, const SecretKey& key)
      : session_(session), cipher_(kind, key, FrameCipher::Way::kOpen) {}
  // Decrypts the parts in place. False: they are not what was sealed under this tag, or were here
  // before; then nothing in them means anything.
  bool Open(const AuthTag& tag, std::span<const std::span<std::byte>> parts);

 private:
  uint64_t session_;
  FrameCipher cipher_;
  uint64_t last_ = 0;
};

}  // namespace hdps
