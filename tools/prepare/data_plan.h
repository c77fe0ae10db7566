// What a job should make of columns: types, transforms, buckets, the label; and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/data_spec.h"
#include "tools/prepare/data_profile.h"

namespace hdps {

struct ColumnPlan {
  ColumnSpec spec;
  std::vector<double> boundaries;  // Of a bucketized feature beside the number; empty: none.
  bool log_buckets = false;        // Else they are quantiles.
  std::string why;                 // In words, for the report.
};

struct DataPlan {
  std::vector<ColumnPlan> columns;  // [profile.columns]
  size_t label = 0;                 // Of these.
  double positive_share = 0;        // Of the rows with a label.
  std::string missing;              // The text that stands for a missing cell.
  uint64_t bad_rows = 0;            // That cannot be read as planned.
  uint64_t eval_bad_rows = 0;
  double keys = 0;                 // Distinct ones, of all sparse features.
  double keys_twice = 0;           // Those that come more than once.
  bool admit_twice = false;        // Most keys come once: rows for those that come again.
  std::vector<std::string> notes;  // What a person should look at.
};

// `label` names the label's column; empty: it is told from names and values. `eval` is the profile
// of the label in the files to evaluate on; null where there are none. kInvalidArgument where there
// is no label that a model of two classes can learn: the message says which columns could be one.
Result<DataPlan> PlanData(const DataProfile& train, const DataProfile* eval,
                          const std::string& label);

// Where numbers are cut: quantiles of the sample, with a value that most rows have kept apart.
// Ascending, at most 24 of them.
std::vector<double> QuantileBoundaries(std::vector<double> sample);
// 1, 2, 4, ... up to `max`.
std::vector<double> LogBoundaries(double max);

}  // namespace hdps
