// Key pairs of CURVE (Curve25519), as libzmq makes and writes them.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Both halves are written in Z85 (rfc.zeromq.org/spec/32): 32 bytes are 40 characters.
inline constexpr size_t kKeyCharacters = 40;

// Invariant: both are keys, and the public one is that of the secret one; or both are empty.
struct CurveKeys {
  std::string public_key;
  std::string secret_key;  // Stands in no log, no message and no command line.
  friend bool operator==(const CurveKeys&, const CurveKeys&) = default;
};

// Drawn from the system's random numbers. kInvalidArgument where libzmq was built without CURVE.
Result<CurveKeys> NewCurveKeys();
// kInvalidArgument when `secret_key` is no key; the message does not repeat it.
Result<CurveKeys> CurveKeysOf(const std::string& secret_key);
// Whether `text` is written as a key is.
bool IsCurveKey(const std::string& text);
// 32 raw bytes as 40 characters; empty for any other number of bytes.
std::string CurveKeyText(const void* bytes, size_t size);

}  // namespace hdps
