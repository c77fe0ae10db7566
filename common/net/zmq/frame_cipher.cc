// The AEADs over libcrypto (EVP), whose AES-256-GCM is three times as fast as libsodium's.
#include "common/net/zmq/frame_cipher.h"

#include <glog/logging.h>
#include <openssl/evp.h>
#include <sodium.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace hdps {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");
static_assert(sizeof(SecretKey) == crypto_kdf_KEYBYTES);

constexpr size_t kNonceBytes = 12, kTagBytes = 16;
constexpr char kKeyPurpose[crypto_kdf_CONTEXTBYTES + 1] = "hdpsdata";
constexpr int kKeyNumberShift = 32;

uint8_t* Bytes(std::byte* bytes) { return reinterpret_cast<uint8_t*>(bytes); }
const uint8_t* Bytes(const std::byte* bytes) { return reinterpret_cast<const uint8_t*>(bytes); }

void InitSodium() { CHECK_GE(sodium_init(), 0) << "libsodium finds no random numbers"; }

}  // namespace

AeadKind OwnAead() {
  InitSodium();
  return crypto_aead_aes256gcm_is_available() != 0 ? AeadKind::kAes256Gcm
                                                   : AeadKind::kChaCha20Poly1305;
}

SecretKey SecretKey::Drawn() {
  InitSodium();
  SecretKey key;
  randombytes_buf(key.bytes_.data(), key.bytes_.size());
  return key;
}

void SecretKey::Wipe(std::span<std::byte> bytes) { sodium_memzero(bytes.data(), bytes.size()); }

uint64_t DrawNumber() {
  InitSodium();
  uint64_t number = 0;
  randombytes_buf(&number, sizeof(number));
  return number;
}

// ---- One direction.

void FrameCipher::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

FrameCipher::FrameCipher(AeadKind kind, const SecretKey& key, Way way)
    : context_(EVP_CIPHER_CTX_new()), kind_(kind), way_(way), key_(key) {
  CHECK(context_ != nullptr) << "libcrypto has no memory for a cipher";
}

void FrameCipher::TakeKey(uint32_t number) {
  const EVP_CIPHER* const cipher =
      kind_ == AeadKind::kAes256Gcm ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
  CHECK(EVP_CIPHER_get_key_length(cipher) == static_cast<int>(sizeof(SecretKey)) &&
        EVP_CIPHER_get_iv_length(cipher) == static_cast<int>(kNonceBytes));
  SecretKey key;
  crypto_kdf_derive_from_key(Bytes(key.bytes().data()), key.bytes().size(), number, kKeyPurpose,
                             Bytes(key_.bytes().data()));
  CHECK_EQ(EVP_CipherInit_ex(context_.get(), cipher, nullptr, Bytes(key.bytes().data()), nullptr,
                             static_cast<int>(way_)),
           1);
  key_number_ = number;
}

void FrameCipher::Begin(uint64_t counter, std::span<const uint64_t> lengths) {
  const auto number = static_cast<uint32_t>(counter >> kKeyNumberShift);
  if (number != key_number_) TakeKey(number);
  uint8_t nonce[kNonceBytes] = {};
  std::memcpy(nonce + sizeof(nonce) - sizeof(counter), &counter, sizeof(counter));
  CHECK_EQ(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce, -1), 1);
  const uint64_t count = lengths.size();
  for (const auto bytes : {std::as_bytes(std::span(&count, 1)), std::as_bytes(lengths)}) {
    int taken = 0;
    CHECK_EQ(EVP_CipherUpdate(context_.get(), nullptr, &taken, Bytes(bytes.data()),
                              static_cast<int>(bytes.size())),
             1);
  }
}

void FrameCipher::Next(const std::byte* from, std::byte* to, size_t size) {
  constexpr size_t kAtOnce = size_t{1} << 30;  // libcrypto counts in int.
  while (size > 0) {
    const size_t some = std::min(size, kAtOnce);
    int made = 0;
    CHECK_EQ(
        EVP_CipherUpdate(context_.get(), Bytes(to), &made, Bytes(from), static_cast<int>(some)), 1);
    from += some;
    to += some;
    size -= some;
  }
}

std::array<std::byte, kTagBytes> FrameCipher::End() {
  std::array<std::byte, kTagBytes> tag;
  uint8_t none[kTagBytes];
  int made = 0;
  CHECK_EQ(EVP_CipherFinal_ex(context_.get(), none, &made), 1);
  CHECK_EQ(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()), 1);
  return tag;
}

bool FrameCipher::EndsWith(const std::array<std::byte, kTagBytes>& tag) {
  std::array<std::byte, kTagBytes> shown = tag;
  uint8_t none[kTagBytes];
  int made = 0;
  CHECK_EQ(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, shown.data()), 1);
  return EVP_CipherFinal_ex(context_.get(), none, &made) == 1;
}

// ---- Both ends of it.

uint64_t CounterAfter(uint64_t last, bool next_key) {
  const uint64_t next = next_key ? ((last >> kKeyNumberShift) + 1) << kKeyNumberShift : last + 1;
  CHECK_GT(next, last) << "a session would use a counter twice with one key";
  CHECK(next_key || next >> kKeyNumberShift == last >> kKeyNumberShift)
      << "a session would encrypt too many frames under one key";
  return next;
}

AuthTag FrameEncryptor::Encrypt(std::span<const PartToEncrypt> parts) {
  std::vector<uint64_t> lengths;
  uint64_t bytes = 0;
  for (const PartToEncrypt& part : parts) {
    lengths.push_back(part.from.size());
    bytes += part.from.size();
  }
  const bool next_key = frames_of_key_ == limits_.frames || bytes_of_key_ + bytes > limits_.bytes;
  if (next_key) frames_of_key_ = bytes_of_key_ = 0;
  ++frames_of_key_;
  bytes_of_key_ += bytes;
  last_ = CounterAfter(last_, next_key);
  cipher_.Begin(last_, lengths);
  for (const PartToEncrypt& part : parts) cipher_.Next(part.from.data(), part.to, part.from.size());
  return {session_, last_, cipher_.End()};
}

bool FrameDecryptor::Decrypt(const AuthTag& tag, std::span<const std::span<std::byte>> parts) {
  // This is checked before decrypting: the counter reveals a repeat at no cost.
  if (tag.session != session_ || tag.counter <= last_) return false;
  std::vector<uint64_t> lengths;
  for (const auto& part : parts) lengths.push_back(part.size());
  cipher_.Begin(tag.counter, lengths);
  for (const auto& part : parts) cipher_.Next(part.data(), part.data(), part.size());
  if (!cipher_.EndsWith(tag.tag)) return false;
  last_ = tag.counter;
  return true;
}

}  // namespace hdps
