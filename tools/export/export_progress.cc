// Looks at the clock at each call, which callers make once for some thousand rows.
#include "tools/export/export_progress.h"

#include "common/base/byte_count.h"
#include "common/base/outside_text.h"
#include "common/process/terminal.h"

namespace hdps {

void ExportProgress::Tell(const std::string& what, uint64_t part, uint64_t whole) {
  constexpr int64_t kPauseNs = 5'000'000'000;
  const int64_t now = clock_->NowNs();
  if (now - told_ns_ < kPauseNs) return;
  told_ns_ = now;
  PrintError("%s: %s of %s\n", EscapeUntrusted(what).c_str(), ShowByteCount(part).c_str(),
             ShowByteCount(whole).c_str());
}

}  // namespace hdps
