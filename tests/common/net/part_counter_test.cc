// Tests the counting of message parts in the bytes of a connection, however these are cut.
#include "common/net/zmq/part_counter.h"

#include <gtest/gtest.h>

#include <string>

namespace hdps {
namespace {

std::string Greeting(char version = 3, const std::string& mechanism = "NULL") {
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f", 10);
  greeting += version;
  greeting += '\0' + mechanism;
  greeting.resize(64, '\0');
  return greeting;
}

// Flags: 1 more, 2 a length of eight bytes, 4 a command.
std::string Part(char flags, size_t bytes) {
  std::string part(1, flags);
  const int last_shift = (flags & 2) != 0 ? 56 : 0;
  for (int shift = last_shift; shift >= 0; shift -= 8) part += static_cast<char>(bytes >> shift);
  return part + std::string(bytes, '\x01');
}

std::string Repeated(const std::string& part, uint32_t times) {
  std::string all;
  for (uint32_t i = 0; i < times; ++i) all += part;
  return all;
}

// Returns whether all bytes may pass if they come in pieces of `piece` bytes.
bool Passes(const std::string& bytes, size_t piece) {
  PartCounter counter;
  bool passes = true;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const std::string some = bytes.substr(at, piece);
    passes = counter.Take(std::as_bytes(std::span(some)));
  }
  return passes;
}

TEST(PartCounter, CountsTheParts) {
  constexpr uint32_t kLast = kPartsArrivingMax - 1;
  const std::string ready = Part(4, 40), end = Part(0, 0);
  for (const size_t piece : {1u, 2u, 7u, 64u, 100'000u}) {
    const auto passes = [&](const std::string& said) {
      return Passes(Greeting() + ready + said, piece);
    };
    EXPECT_TRUE(passes(Repeated(Repeated(Part(1, 1), kLast) + end, 5))) << piece;
    EXPECT_TRUE(passes(Repeated(Part(3, 300) + Part(2, 70'000), 3))) << piece;
    EXPECT_TRUE(passes(Repeated(Part(0, 1), 1000))) << "each a message of its own";
    EXPECT_TRUE(passes(Repeated(Part(4, 12), 1000))) << "commands that nothing is queued of";
    EXPECT_FALSE(passes(Repeated(Part(1, 1), kLast + 1))) << piece;
    EXPECT_FALSE(passes(Repeated(Part(1, 0), kLast + 1) + end + end)) << "once and for all";
    EXPECT_FALSE(passes(Repeated(Part(3, 300), kLast + 1))) << piece;
    EXPECT_FALSE(passes(Repeated(Part(5, 12), kLast + 1))) << "commands with more behind them";
    EXPECT_FALSE(passes(Repeated(Part(1, 1) + Part(4, 3), kLast + 1))) << "commands between them";
  }
}

// HELLO has 200 bytes, INITIATE some hundreds; later messages come from the holder of a key.
TEST(PartCounter, BoundsWhatIsSaidBeforeAKey) {
  constexpr size_t kMost = kHandshakeBytesMax;
  for (const size_t piece : {1u, 7u, 100'000u}) {
    const auto passes = [&](const std::string& mechanism, const std::string& said) {
      return Passes(Greeting(3, mechanism) + said, piece);
    };
    const std::string hello = Part(4, 200), initiate = Part(6, 400), large = Part(2, 70'000);
    EXPECT_TRUE(passes("CURVE", hello + initiate + large)) << piece;
    EXPECT_TRUE(passes("CURVE", Part(6, kMost) + Part(6, kMost) + large)) << piece;
    EXPECT_FALSE(passes("CURVE", Part(6, kMost + 1).substr(0, 9))) << "once it is announced";
    EXPECT_FALSE(passes("CURVE", hello + Part(2, kMost + 1).substr(0, 9))) << "a command or not";
    EXPECT_FALSE(passes("CURVE", hello + Part(0, 0) + Repeated(Part(1, 1), kPartsArrivingMax)));
    EXPECT_TRUE(passes("NULL", large)) << piece;
  }
}

TEST(PartCounter, CountsNothingOfAnotherProtocol) {
  const std::string parts = Repeated(Part(1, 1), 100);
  EXPECT_TRUE(Passes("GET / HTTP/1.1\r\n" + std::string(100, '\x01'), 5));
  EXPECT_TRUE(Passes(Greeting(2) + parts, 5));
  EXPECT_FALSE(Passes(Greeting(3) + parts, 5));
  EXPECT_FALSE(Passes(Greeting(4) + parts, 5)) << "libzmq takes what is newer for 3";
}

}  // namespace
}  // namespace hdps
