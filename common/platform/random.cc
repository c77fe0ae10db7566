// Normal random numbers, and random numbers of the operating system.
#include "common/platform/random.h"

#include <glog/logging.h>
#include <sys/random.h>

#include <cerrno>
#include <cmath>
#include <numbers>

namespace hdps {

double Random::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Unit()));  // 1 - Unit() is never 0.
  return radius * std::cos(2.0 * std::numbers::pi * Unit());
}

namespace {

uint64_t DrawnBits() {
  uint64_t drawn = 0;
  while (getrandom(&drawn, sizeof(drawn), 0) != static_cast<ssize_t>(sizeof(drawn))) {
    PCHECK(errno == EINTR) << "cannot draw a random number for this process";
  }
  return drawn;
}

}  // namespace

PeerId NewPeerId() {
  uint64_t drawn = 0;
  while (drawn <= kSchedulerPeer.value) drawn = DrawnBits();  // 0: no peer, 1: the scheduler.
  return {drawn};
}

std::string NewToken() {
  std::string token;
  for (int word = 0; word < 2; ++word) {
    const uint64_t bits = DrawnBits();
    for (int shift = 60; shift >= 0; shift -= 4) token += "0123456789abcdef"[bits >> shift & 15];
  }
  return token;
}

}  // namespace hdps
