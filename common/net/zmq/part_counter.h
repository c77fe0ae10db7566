// Counts the parts of a ZeroMQ message, and the bytes of a handshake, while they arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hdps {

// A message with more parts is not a frame, and its connection is ended. The limit is above that of
// a frame, so that a message with a few parts too many is still refused with a reason.
inline constexpr uint32_t kPartsArrivingMax = 16;
// Length limit of each of the two commands that a side sends under CURVE before it has shown its
// key, or, as a listener, before it has accepted the other side. Without it, libzmq would allocate
// whatever length is announced.
inline constexpr uint64_t kHandshakeBytesMax = 4096;

// Parses what one end sends in ZMTP 3 (rfc.zeromq.org/spec/23): a greeting, then parts and
// commands, each after its flags and length.
//
// Invariant: it holds a few bytes, whatever comes, and does not look into the parts. What is not
// ZMTP 3 is not counted, because libzmq refuses such peers when an authenticator is asked.
class PartCounter {
 public:
  // Takes the next bytes of the connection. Returns false, from then on for ever, if a message has
  // too many parts or the handshake is too long.
  bool Take(std::span<const std::byte> bytes);

 private:
  static constexpr size_t kGreetingBytes = 64;
  static constexpr size_t kHeaderBytesMax = 1 + sizeof(uint64_t);
  enum class Inside : uint8_t { kGreeting, kHeader, kBody, kOther, kTooMuch };

  void TakeGreeting(std::byte byte);
  void TakeHeader(std::byte byte);

  Inside inside_ = Inside::kGreeting;
  std::array<std::byte, kHeaderBytesMax> header_{};
  size_t taken_ = 0;   // Bytes of the greeting or the header.
  uint64_t left_ = 0;  // Bytes of the part or command.
  uint32_t parts_ = 0;
  bool curve_ = true;       // False once the greeting differs.
  int handshake_left_ = 0;  // Commands that CURVE sends before a key is shown.
};

}  // namespace hdps
