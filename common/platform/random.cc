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

PeerId NewPeerId() {
  uint64_t drawn = 0;
  while (drawn <= kSchedulerPeer.value) {  // 0 means no peer, 1 is the scheduler.
    const ssize_t bytes = getrandom(&drawn, sizeof(drawn), 0);
    if (bytes == static_cast<ssize_t>(sizeof(drawn))) continue;
    PCHECK(errno == EINTR) << "cannot draw a random number for this process";
    drawn = 0;
  }
  return {drawn};
}

}  // namespace hdps
