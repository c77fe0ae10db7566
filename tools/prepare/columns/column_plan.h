// Plans one column of a job: type, transform and buckets, with the reasons.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_spec.h"
#include "tools/prepare/data_profile.h"

namespace hdps {

enum class ColumnType : uint8_t;

struct ColumnPlan {
  ColumnSpec spec;
  // Cuts of the bucketized feature that is made beside the number; empty: none.
  std::vector<double> boundaries;
  bool log_buckets = false;  // The boundaries are powers of two; else they are quantiles.
  std::string why;           // Reason, for the report.
  std::string look_at;       // Advice what to check; empty: none.
};

// Plans a column. `missing` is the text that stands for a missing cell, `wanted` the type that the
// user gave. Returns kInvalidArgument if the cells are not of this type, or are numbers in a form
// that a job cannot read; the message gives the first place and the remedy.
Result<ColumnPlan> PlanColumn(const ColumnProfile& column, const std::string& missing,
                              std::optional<ColumnType> wanted);

// Returns quantiles of the sample as boundaries, ascending, at most 24. A value that most rows have
// gets a bucket of its own.
std::vector<double> QuantileBoundaries(std::vector<double> sample);
// Returns 1, 2, 4, ... up to `max`.
std::vector<double> LogBoundaries(double max);

}  // namespace hdps
