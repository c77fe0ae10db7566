// Key pairs of CURVE (Curve25519) in the form that libzmq uses.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Length of a key as text: Z85 (rfc.zeromq.org/spec/32) writes 32 bytes as 40 characters.
inline constexpr size_t kKeyCharacters = 40;

// Invariant: either both keys are valid and belong together, or both are empty.
struct CurveKeys {
  std::string public_key;
  std::string secret_key;  // Never written to a log, a message or a command line.
  friend bool operator==(const CurveKeys&, const CurveKeys&) = default;
};

// Draws a key pair from the system's random numbers. Errors: kInvalidArgument if libzmq was built
// without CURVE.
Result<CurveKeys> NewCurveKeys();
// Returns the pair of a secret key. Errors: kInvalidArgument if `secret_key` is not a key; the
// message does not repeat it.
Result<CurveKeys> CurveKeysOf(const std::string& secret_key);
// Is true if `text` has the form of a key.
bool IsCurveKey(const std::string& text);
// Writes 32 raw bytes as 40 characters; returns an empty text for any other number of bytes.
std::string CurveKeyText(const void* bytes, size_t size);

}  // namespace hdps
