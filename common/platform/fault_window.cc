// Checks the time or the file.
#include "common/platform/fault_window.h"

#include <unistd.h>

namespace hdps {

bool FaultWindow::Holds(int64_t now_ms) const {
  if (!while_file.empty()) return ::access(while_file.c_str(), F_OK) == 0;
  return now_ms >= from_ms && now_ms - from_ms < for_ms;
}

}  // namespace hdps
