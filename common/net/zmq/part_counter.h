// Counts the parts of a ZeroMQ message, and the bytes of a handshake, while they arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hdps {

// A message of more parts than this is none of ours, and its connection ends. It is above the
// number of a frame's, so that one that is a few too long is still refused by name.
inline constexpr uint32_t kPartsArrivingMax = 16;
// A side that greets with CURVE says two things before it has shown its key, or as listener that it
// lets the other in, and neither is longer: libzmq would take the memory for whatever is announced.
inline constexpr uint64_t kHandshakeBytesMax = 4096;

// Reads what one end says in ZMTP 3 (rfc.zeromq.org/spec/23): a greeting, then parts and commands,
// each behind its flags and length.
//
// Invariant: it holds a few bytes, whatever comes, and looks at none of a part's. What is no ZMTP 3
// is not counted: libzmq lets in no other where it is asked to authenticate.
class PartCounter {
 public:
  // The next bytes of the connection. False: a message has too many parts, or the handshake is too
  // long, once and for all.
  bool Take(std::span<const std::byte> bytes);

 private:
  static constexpr size_t kGreetingBytes = 64;
  static constexpr size_t kHeaderBytesMax = 1 + sizeof(uint64_t);
  enum class Inside : uint8_t { kGreeting, kHeader, kBody, kOther, kTooMuch };

  void TakeGreeting(std::byte byte);
  void TakeHeader(std::byte byte);

  Inside inside_ = Inside::kGreeting;
  std::array<std::byte, kHeaderBytesMax> header_{};
  size_t taken_ = 0;   // Of the greeting or the header.
  uint64_t left_ = 0;  // Of the part or command.
  uint32_t parts_ = 0;
  bool curve_ = true;       // So far as the greeting has come.
  int handshake_left_ = 0;  // Of what CURVE says before a key is shown.
};

}  // namespace hdps
