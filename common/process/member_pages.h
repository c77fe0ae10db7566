// What a server or a worker answers over HTTP about itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/http/http_server.h"
#include "common/platform/monotonic_clock.h"
#include "common/telemetry/figure_records.h"
#include "common/telemetry/member_watch.h"

namespace hdps {

struct Job;

struct MemberPagesOptions {
  FigureRole role = FigureRole::kWorker;
  std::shared_ptr<const Job> job;
  std::string scheduler_address;
};

// Returns /metrics, /healthz, /readyz, /api/v1/figures and /, a plain page that says where the
// job's page is. Requires: `watch` and `clock` outlive the paths; the clock is that of the member's
// loop, and may be read from any thread.
std::vector<HttpPath> MemberPages(const MemberPagesOptions& options, const MemberWatch& watch,
                                  MonotonicClock& clock);

}  // namespace hdps
