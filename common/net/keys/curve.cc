// Key pairs by libzmq, which uses libsodium.
#include "common/net/keys/curve.h"

#include <zmq.h>

#include <array>
#include <cstdint>

namespace hdps {
namespace {

constexpr size_t kKeyBytes = 32;
using KeyText = std::array<char, kKeyCharacters + 1>;

}  // namespace

Result<CurveKeys> NewCurveKeys() {
  KeyText public_key{}, secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return Status(Code::kInvalidArgument,
                  "this libzmq was built without CURVE; install one with libsodium");
  }
  return CurveKeys{public_key.data(), secret_key.data()};
}

Result<CurveKeys> CurveKeysOf(const std::string& secret_key) {
  KeyText public_key{};
  if (!IsCurveKey(secret_key) || zmq_curve_public(public_key.data(), secret_key.c_str()) != 0) {
    return Status(Code::kInvalidArgument, "it holds no secret key of 40 characters in Z85");
  }
  return CurveKeys{public_key.data(), secret_key};
}

bool IsCurveKey(const std::string& text) {
  std::array<uint8_t, kKeyBytes> bytes;
  return text.size() == kKeyCharacters && text.find('\0') == std::string::npos &&
         zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

std::string CurveKeyText(const void* bytes, size_t size) {
  KeyText text{};
  if (size != kKeyBytes) return "";
  return zmq_z85_encode(text.data(), static_cast<const uint8_t*>(bytes), size) != nullptr
             ? text.data()
             : "";
}

}  // namespace hdps
