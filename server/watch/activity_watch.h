// Tells since when a server has been at its present activity.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/activity.h"

namespace hdps {

struct Command;

// Returns the present activity of a server. `command`: the one that it carries out, or null;
// `background_runs`: a request or command runs beside the loop; `waits_for`: members whose part is
// missing; `written_folder`: that of the checkpoint being written, or empty.
Activity ActivityOf(const Command* command, bool background_runs,
                    const std::vector<PeerId>& waits_for, const std::string& written_folder);

// Invariant: the time of an activity counts from the first observation of it, as long as every
// observation since has shown the same activity and the same progress.
class ActivityWatch {
 public:
  // Returns `seen` with its times filled in. `progress` is a number that grows with each thing
  // done.
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
