// Tests the share of a listener's time that guests get, with a settable clock, and beside a member.
#include "common/net/guest_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include "common/platform/monotonic_clock.h"
#include "tests/common/net/keys_of_a_job.h"

namespace hdps {
namespace {

constexpr int64_t kMicro = 1000, kSecond = 1'000'000'000;

struct Served {
  int64_t frames = 0, ns = 0;
};

// Guests send requests without pause for `for_ns`, and each frame takes `each_ns`.
Served ServeGuests(GuestShare& share, int64_t each_ns, size_t connections, int64_t for_ns) {
  Served served;
  for (int64_t now = 0; now < for_ns;) {
    if (share.Rests(now)) {
      now = share.rests_until_ns();
      continue;
    }
    share.OnServed(now, now + each_ns, connections);
    now += each_ns;
    ++served.frames;
    served.ns += each_ns;
  }
  return served;
}

TEST(GuestShare, IsATenth) {
  for (const int64_t each : {1 * kMicro, 20 * kMicro, 500 * kMicro, 2000 * kMicro}) {
    GuestShare share;
    const Served served = ServeGuests(share, each, 20, 10 * kSecond);
    EXPECT_LE(served.ns, kSecond + GuestShare::kSlackNs + each) << each;
    EXPECT_GE(served.ns, kSecond * 9 / 10) << "and no less: " << each;
  }
}

TEST(GuestShare, WhoAsksNowAndThenWaitsForNothing) {
  GuestShare share;
  for (int64_t now = 0; now < kSecond; now += 10'000 * kMicro) {
    EXPECT_FALSE(share.Rests(now));
    share.OnServed(now, now + 100 * kMicro, 1);
    EXPECT_FALSE(share.Rests(now + 100 * kMicro));
  }
}

// One frame of each connection may precede a member's.
TEST(GuestShare, ARoundOfAllConnectionsRestsForHalfASecondAtMost) {
  for (const size_t connections : {1u, 20u, 500u, 4096u}) {
    GuestShare share;
    int64_t now = 0, own = 0;
    for (size_t i = 0; i < connections; ++i) {
      // Some requests while it is busy.
      const int64_t each = i % 7 == 0 ? 50'000 * kMicro : 100 * kMicro;
      if (share.Rests(now)) now = share.rests_until_ns();
      share.OnServed(now, now + each, connections);
      now += each;
      own += each;
    }
    now = std::max(now, share.rests_until_ns());
    EXPECT_LE(now - own, GuestShare::kRoundNs + GuestShare::kSlackNs) << connections;
  }
}

class GuestsOfAJob : public KeysOfAJob {};

// If guests ask faster than a listener answers, it sleeps for most of the time, and still answers a
// member.
TEST_F(GuestsOfAJob, AMemberIsHeardBesideThem) {
  options_.queue_frames_max = 64;
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  std::atomic<bool> stop = false;
  std::thread guests([&, folder = FolderElsewhere("reader")] {
    const auto reader = Dial(kStranger, folder);
    PeerId from;
    Frame frame;
    while (!stop) {
      for (int i = 0; i < 64; ++i) reader->Send(kServerPeer, EncodeMessage(Probe()));
      reader->Receive(1, &from, &frame);
    }
  });
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  uint64_t asked = 0, answered = 0, of_guests = 0;
  int64_t guests_ns = 0;
  const int64_t begin = clock->NowNs();
  while (clock->NowNs() < begin + 2 * kSecond) {
    PeerId from;
    Frame frame;
    if (asked == answered) {
      worker->Send(kServerPeer, EncodeMessage(Probe()));
      ++asked;
    }
    if (server_->Receive(1, &from, &frame)) {
      const int64_t took = clock->NowNs();
      if (from == kStranger) {
        while (clock->NowNs() < took + 200 * kMicro) {
        }
        ++of_guests;
      }
      server_->Send(from, EncodeMessage(ProbeAck()));
      if (from == kStranger) guests_ns += clock->NowNs() - took;
    }
    if (worker->Receive(0, &from, &frame)) ++answered;
  }
  const int64_t all_ns = clock->NowNs() - begin;
  stop = true;
  guests.join();
  std::printf(
      "[ measured ] guests: %d of their frames in %d of %d ms; a member beside them was "
      "answered %d times\n",
      static_cast<int>(of_guests), static_cast<int>(guests_ns / 1'000'000),
      static_cast<int>(all_ns / 1'000'000), static_cast<int>(answered));
  EXPECT_GT(of_guests, 10u);
  EXPECT_GT(answered, 10u);
  EXPECT_LE(guests_ns, all_ns / 5) << "a tenth, and what this thread does besides";
}

}  // namespace
}  // namespace hdps
