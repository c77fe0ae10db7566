// Takes the lines that the HTTP library writes.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/outside_text.h"
#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

// Writes the library's lines to the log. The first of the start is kept too, because it says why it
// failed.
class LibraryLog {
 public:
  void Write(std::string line);
  // Returns the first line of the start without its period, and keeps none from now on.
  std::string EndOfStart();

 private:
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  Mutex mutex_;  // The thread that starts and the one that answers both write.
  bool starting_ HDPS_GUARDED_BY(mutex_) = true;
  std::string why_ HDPS_GUARDED_BY(mutex_);
  LineRateLimit rate_ HDPS_GUARDED_BY(mutex_);
};

// Writes to a LibraryLog, as the library calls it.
void WriteLine(void* log, const char* format, va_list values) __attribute__((format(printf, 2, 0)));

}  // namespace hdps
