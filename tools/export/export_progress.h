// Tells the operator how far a long export is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/platform/monotonic_clock.h"

namespace hdps {

// Invariant: a line comes at most every 5 seconds, so that a short export prints none.
class ExportProgress {
 public:
  ExportProgress() : clock_(NewSystemClock()), begun_ns_(clock_->NowNs()), told_ns_(begun_ns_) {}

  // Prints "WHAT: PART of WHOLE" to stderr, in bytes.
  void Tell(const std::string& what, uint64_t part, uint64_t whole);
  double seconds() const { return static_cast<double>(clock_->NowNs() - begun_ns_) * 1e-9; }

 private:
  const std::unique_ptr<MonotonicClock> clock_;
  const int64_t begun_ns_;
  int64_t told_ns_;
};

}  // namespace hdps
