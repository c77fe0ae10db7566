// Samples as the text that Prometheus reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/telemetry/samples.h"

namespace hdps {

// The Content-Type of the text.
inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Series of a figure whose labels have free values; further ones are left out, so that the text
// stays small however many sets a job evaluates.
inline constexpr size_t kFreeSeriesMax = 40;

// Returns the samples in Prometheus' text format, version 0.0.4: of each figure its help and kind,
// then its samples, in the order of the list; behind them hdps_build_info, whose labels say what
// this program is. Buckets of histograms are cumulative there.
//
// Requires: no two samples of one figure have the same labels.
std::string PrometheusText(const std::vector<Sample>& samples);

}  // namespace hdps
