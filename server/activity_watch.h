// Since when a server is at what it is at.
#pragma once

#include <cstdint>
#include <utility>

#include "common/net/node.h"
#include "common/protocol/activity.h"

namespace hdps {

// Invariant: a server that is seen at the same, with the same progress, again and again, has been
// so since it was first seen so.
class ActivityWatch {
 public:
  // `seen` with its times. `progress` grows with each thing that is done.
  Activity At(Activity seen, uint64_t progress, TimeMs now) {
    if (seen != seen_ || progress != progress_) {
      seen_ = seen;
      progress_ = progress;
      since_ = now;
    }
    seen.for_ms = now - since_;
    for (Awaited& awaited : seen.awaited) awaited.for_ms = seen.for_ms;
    return seen;
  }

 private:
  Activity seen_;
  uint64_t progress_ = 0;
  TimeMs since_ = 0;
};

}  // namespace hdps
