// The plan of one column of a job: its type, transform and buckets, and why.
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
  std::vector<double> boundaries;  // Of a bucketized feature beside the number; empty: none.
  bool log_buckets = false;        // Else they are quantiles.
  std::string why;                 // In words, for the report.
  std::string look_at;             // What a person should look at, in words; empty: nothing.
};

// `missing` is the text that stands for a missing cell; `wanted` what a person says the column is.
// kInvalidArgument where its cells are not of the type wanted, or mean numbers that a job does not
// read as they are written: the message has the first place and the mend.
Result<ColumnPlan> PlanColumn(const ColumnProfile& column, const std::string& missing,
                              std::optional<ColumnType> wanted);

// Where numbers are cut: quantiles of the sample, with a value that most rows have kept apart.
// Ascending, at most 24 of them.
std::vector<double> QuantileBoundaries(std::vector<double> sample);
// 1, 2, 4, ... up to `max`.
std::vector<double> LogBoundaries(double max);

}  // namespace hdps
