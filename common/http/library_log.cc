// Writes lines at a limited rate, because strangers cause them.
#include "common/http/library_log.h"

#include <glog/logging.h>

#include <cstdio>
#include <utility>

namespace hdps {

void LibraryLog::Write(std::string line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '.')) line.pop_back();
  const MutexLock lock(mutex_);
  if (starting_ && why_.empty()) why_ = line;
  const int64_t now_ms = clock_->NowMs();
  if (const auto told = rate_.Take(std::move(line), now_ms)) {
    LOG(INFO) << "http: " << EscapeUntrusted(*told);
  }
  if (const auto left_out = rate_.LeftOut(now_ms)) LOG(INFO) << "http: " << *left_out;
}

std::string LibraryLog::EndOfStart() {
  const MutexLock lock(mutex_);
  starting_ = false;
  return std::exchange(why_, "");
}

void WriteLine(void* log, const char* format, va_list values) {
  char line[512];
  std::vsnprintf(line, sizeof(line), format, values);
  static_cast<LibraryLog*>(log)->Write(line);
}

}  // namespace hdps
