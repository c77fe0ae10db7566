// Waits until a followed log may have more rows.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace hdps {

// The reader's thread waits; any thread may call Stop().
class RowWait {
 public:
  virtual ~RowWait() = default;
  // Waits until it is time to look again. `behind` is the place of the last row: "log.csv:17".
  // Returns false, at once, after Stop().
  virtual bool Wait(const std::string& behind) = 0;
  // Notes that there was more after a wait.
  virtual void End() {}
  // Ends all waits for good.
  virtual void Stop() = 0;
};

// A log is looked at so often.
inline constexpr int kFollowEveryMs = 200;

// Returns a wait of kFollowEveryMs of real time. `tell` is called with the place of the last row at
// the begin of each wait, and with "" when there was more; may be empty.
std::shared_ptr<RowWait> NewPollingWait(std::function<void(const std::string& behind)> tell);

}  // namespace hdps
