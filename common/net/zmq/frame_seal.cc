// The seal over libsodium: ChaCha20 makes a key for one frame, Poly1305 the tag under it.
#include "common/net/zmq/frame_seal.h"

#include <glog/logging.h>
#include <sodium.h>

#include <bit>
#include <cstring>

namespace hdps {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");
static_assert(std::tuple_size_v<SealKey> == crypto_stream_chacha20_ietf_KEYBYTES);
static_assert(kSealTagBytes == crypto_onetimeauth_BYTES);
constexpr size_t kPadTo = 16;

// Bytes as they come, and how many that were.
class Authenticated {
 public:
  explicit Authenticated(const uint8_t* one_time_key) {
    crypto_onetimeauth_init(&state_, one_time_key);
  }
  void Add(std::span<const std::byte> bytes) {
    crypto_onetimeauth_update(&state_, reinterpret_cast<const uint8_t*>(bytes.data()),
                              bytes.size());
    size_ += bytes.size();
  }
  void AddNumber(uint64_t number) { Add(std::as_bytes(std::span(&number, 1))); }
  // Pads, and adds the lengths of what was authenticated and of no ciphertext.
  SealTag End() {
    const uint64_t lengths[2] = {size_, 0};
    constexpr std::byte kZeros[kPadTo] = {};
    Add(std::span(kZeros).first((kPadTo - size_ % kPadTo) % kPadTo));
    Add(std::as_bytes(std::span(lengths)));
    SealTag tag;
    crypto_onetimeauth_final(&state_, reinterpret_cast<uint8_t*>(tag.data()));
    return tag;
  }

 private:
  crypto_onetimeauth_state state_;
  uint64_t size_ = 0;
};

}  // namespace

void DrawSecret(std::span<std::byte> bytes) {
  CHECK_GE(sodium_init(), 0) << "libsodium finds no random numbers";
  randombytes_buf(bytes.data(), bytes.size());
}

SealTag TagOf(const SealKey& key, uint64_t counter,
              std::span<const std::span<const std::byte>> parts) {
  uint8_t nonce[crypto_stream_chacha20_ietf_NONCEBYTES] = {};
  static_assert(sizeof(nonce) == 4 + sizeof(counter));
  std::memcpy(nonce + 4, &counter, sizeof(counter));
  uint8_t one_time_key[crypto_onetimeauth_KEYBYTES];
  crypto_stream_chacha20_ietf(one_time_key, sizeof(one_time_key), nonce,
                              reinterpret_cast<const uint8_t*>(key.data()));
  Authenticated all(one_time_key);
  sodium_memzero(one_time_key, sizeof(one_time_key));
  all.AddNumber(parts.size());
  for (const auto& part : parts) all.AddNumber(part.size());
  for (const auto& part : parts) all.Add(part);
  return all.End();
}

FrameSeal FrameSealer::Seal(std::span<const std::span<const std::byte>> parts) {
  ++counter_;
  return {session_, counter_, TagOf(key_, counter_, parts)};
}

bool SealChecker::Accept(const FrameSeal& seal, std::span<const std::span<const std::byte>> parts) {
  // Before the work of a tag: it tells a repeat, whoever sent it.
  if (seal.session != session_ || seal.counter <= last_) return false;
  const SealTag tag = TagOf(key_, seal.counter, parts);
  if (sodium_memcmp(tag.data(), seal.tag.data(), tag.size()) != 0) return false;
  last_ = seal.counter;
  return true;
}

}  // namespace hdps
