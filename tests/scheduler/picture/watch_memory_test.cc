// Tests that watching a large job takes bounded memory and small answers.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>
#include <string>

#include "scheduler/picture/panels.h"
#include "tests/scheduler/picture/watched_members.h"

namespace hdps {
namespace {

size_t HeapBytes() { return mallinfo2().uordblks; }

// An hour of heartbeats of 100 members, and of lines of metrics.jsonl. After 40 minutes every ring
// has been full once.
TEST(WatchMemory, IsFlatOverAnHourOfAHundredMembers) {
  WatchedMembers members(40, 60);
  size_t at_forty = 0, update_max = 0, whole = 0;
  uint64_t seen = 0;
  constexpr TimeMs kHeartbeatMs = 500, kMinuteMs = 60'000;
  for (TimeMs now = 0; now <= 60 * kMinuteMs; now += kHeartbeatMs) {
    for (size_t m = 0; m < members.meters.size(); ++m) {
      members.meters[m]->Observe(m < 40 ? FigureNamed("hdps_server_pull_seconds")
                                        : FigureNamed("hdps_worker_step_seconds"),
                                 10'000'000);
    }
    members.Beat(now);
    if (now % 1000 == 0) {
      members.watch->TakeLine(R"({"step": )" + std::to_string(now) +
                              R"(, "examples_per_second": 1e5, "train_loss": 0.123456789012345,)"
                              R"( "learning_rate": 0.001})");
      members.watch->TakeNotice("saved out/checkpoint/step_" + std::to_string(now), false);
    }
    EXPECT_EQ(members.watch->OnTick(now, [&] { return members.Now(now); }), "");
    if (now % kMinuteMs == 0 && now > 0) {
      const std::shared_ptr<const JobPicture> picture = members.options.pictures->Get();
      const std::string update = *PanelJson(*picture, "page", seen == 0 ? picture->version : seen);
      update_max = std::max(update_max, update.size());
      whole = WholeJson(*picture).size();
    }
    // A page asks once a second.
    if (now % kMinuteMs == kMinuteMs - 1000) seen = members.options.pictures->Get()->version;
    if (now == 40 * kMinuteMs) at_forty = HeapBytes();
  }
  const size_t at_sixty = HeapBytes();
  std::printf(
      "[ FIGURE ] heap after 40 minutes %zu KiB, after 60 %zu KiB; an update %zu bytes, "
      "everything %zu bytes\n",
      at_forty >> 10, at_sixty >> 10, update_max, whole);
  EXPECT_LE(at_sixty, at_forty + (64 << 10));
  EXPECT_LE(update_max, size_t{64} << 10);
}

}  // namespace
}  // namespace hdps
