// Authenticated encryption of frames: all parts are encrypted by an AEAD, and a tag proves to the
// receiver that they are unchanged.
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
// Returns AES if this machine has instructions for it. Otherwise returns ChaCha20, which is fast
// without special instructions and takes the same time for every key.
AeadKind OwnAead();

// The bytes of a key, wiped on destruction.
//
// Invariant: the bytes exist only in this object and its copies.
class SecretKey {
 public:
  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey() { Wipe(bytes_); }

  static SecretKey Drawn();  // Drawn from the system's random numbers.
  std::span<const std::byte, 32> bytes() const { return bytes_; }
  std::span<std::byte, 32> bytes() { return bytes_; }
  // Overwrites bytes in a way that no compiler removes.
  static void Wipe(std::span<std::byte> bytes);

 private:
  std::array<std::byte, 32> bytes_{};
};

// Draws a number in the same way.
uint64_t DrawNumber();

// The last part of an encrypted message, in the clear.
struct AuthTag {
  uint64_t session = 0;
  // Grows with every frame of one direction of one session. The upper 32 bits number the key, the
  // lower 32 the frames under that key.
  uint64_t counter = 0;
  std::array<std::byte, 16> tag{};
};
static_assert(sizeof(AuthTag) == 32);

// Limits on what is encrypted under one key before the next one is derived.
struct KeyLimits {
  // NIST SP 800-38D, 8.3: at most 2^32 invocations under one key of GCM, unless all nonces come
  // from a counter. Ours do, and we stay below the limit all the same.
  uint64_t frames = (uint64_t{1} << 32) - 1;
  // RFC 8446, 5.5: after 2^24.5 records of 16 KiB, which are 2^38.5 bytes, an attacker
  // distinguishes GCM from random bytes with advantage 2^-57.
  uint64_t bytes = uint64_t{1} << 38;
};
// NIST SP 800-38D, 5.2.1.1: one invocation encrypts at most 2^39 - 256 bits.
static_assert((2 + kFrameSectionsMax) * kFrameBytesMax < (uint64_t{1} << 36) - 32);

// The AEAD of one direction of a session. Key number n is derived from the exchanged key
// (crypto_kdf of libsodium, BLAKE2b). The nonce is four zero bytes and the counter, little-endian.
// The additional authenticated data is the number of parts and the length of each, in eight bytes
// each, little-endian. The parts are encrypted one after the other as if they were one.
class FrameCipher {
 public:
  enum class Way : int { kDecrypt = 0, kEncrypt = 1 };
  FrameCipher(AeadKind kind, const SecretKey& key, Way way);

  // Begins frame `counter` with parts of these lengths.
  void Begin(uint64_t counter, std::span<const uint64_t> lengths);
  // Processes the next bytes. `from` and `to` may be the same.
  void Next(const std::byte* from, std::byte* to, size_t size);
  std::array<std::byte, 16> End();                      // Requires: kEncrypt.
  bool EndsWith(const std::array<std::byte, 16>& tag);  // Requires: kDecrypt.

 private:
  void TakeKey(uint32_t number);

  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;  // Frees the context and wipes its key.
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  AeadKind kind_;
  Way way_;
  SecretKey key_;                       // The others are derived from it.
  std::optional<uint32_t> key_number_;  // Number of the key in `context_`.
};

// A part to encrypt, and the place of its ciphertext; both may be the same.
struct PartToEncrypt {
  std::span<const std::byte> from;
  std::byte* to;
};

// Returns the counter after `last`: the next frame under the same key, or the first under the next
// key. A CHECK ensures that it is above `last`, so no counter is used twice.
uint64_t CounterAfter(uint64_t last, bool next_key);

// The sender's end of one direction of a session.
//
// Invariant: no counter is used twice, and no key beyond its limits.
class FrameEncryptor {
 public:
  FrameEncryptor(uint64_t session, AeadKind kind, const SecretKey& key, KeyLimits limits = {})
      : session_(session), limits_(limits), cipher_(kind, key, FrameCipher::Way::kEncrypt) {}
  AuthTag Encrypt(std::span<const PartToEncrypt> parts);

 private:
  uint64_t session_;
  KeyLimits limits_;
  FrameCipher cipher_;
  uint64_t last_ = 0;                              // Counter of the last frame; 0 before the first.
  uint64_t frames_of_key_ = 0, bytes_of_key_ = 0;  // Encrypted under the current key.
};

// The receiver's end of the same direction.
//
// Invariant: the counters of accepted frames only grow, so no frame is accepted twice or after one
// that was sent later. Frames may be missing.
class FrameDecryptor {
 public:
  FrameDecryptor(uint64_t session, AeadKind kind, const SecretKey& key)
      : session_(session), cipher_(kind, key, FrameCipher::Way::kDecrypt) {}
  // Verifies and decrypts the parts in place. Returns false if they are not what was encrypted
  // under this tag, or not newer than the last accepted frame; then the parts are garbage.
  bool Decrypt(const AuthTag& tag, std::span<const std::span<std::byte>> parts);

 private:
  uint64_t session_;
  FrameCipher cipher_;
  uint64_t last_ = 0;
};

}  // namespace hdps
