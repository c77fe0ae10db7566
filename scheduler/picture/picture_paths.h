// Answers HTTP requests about a job from its newest picture.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/http/http_server.h"
#include "common/platform/monotonic_clock.h"
#include "common/telemetry/published.h"
#include "common/telemetry/samples.h"

namespace hdps {

struct JobPicture;

// The members whose figures /metrics tells besides the scheduler's: those of this process.
enum class MembersHere : uint8_t { kNone, kAll };

// Returns the paths /api/v1/NAME for each panel, /metrics, /healthz and /readyz, and those of the
// page that shows them. Requires: `clock`
// is the scheduler's, and may be read from any thread; both outlive the paths.
std::vector<HttpPath> PicturePaths(std::shared_ptr<Published<JobPicture>> pictures,
                                   MonotonicClock& clock, MembersHere members);

// Returns the samples of /metrics.
std::vector<Sample> SamplesToTell(const JobPicture& picture, MembersHere members);

}  // namespace hdps
