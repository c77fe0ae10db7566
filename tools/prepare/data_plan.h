// What a job should make of columns: types, transforms, buckets, the label; and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/columns/column_plan.h"
#include "tools/prepare/columns/label_plan.h"
#include "tools/prepare/data_profile.h"

namespace hdps {

struct DataPlan {
  static constexpr size_t kTimesMax = 16;

  std::vector<ColumnPlan> columns;  // [profile.columns]
  TaskKind task = TaskKind::kBinary;
  size_t label = 0;          // Of these; kNoColumn: none, under kPositivesOnly.
  uint32_t num_classes = 2;  // kClasses; their texts are in the label's spec, if they have any.
  double label_mean = 0;     // kRating.
  double label_deviation = 0;
  // Columns that say whom and what a row is about, by name and values: of rankings, and of all data
  // that has both; kNoColumn: none. Both are categorical, the user may be of type group instead.
  size_t user = kNoColumn, item = kNoColumn;
  // kPositivesOnly: what data.item_features and data.negatives.per_positive have to be.
  std::vector<std::string> item_features;
  uint32_t negatives = 0;
  std::vector<TaskKind> choices;  // As LabelPlan has them.
  double positive_share = 0;      // Of the rows with a label.
  std::string missing;            // The text that stands for a missing cell.
  uint64_t bad_rows = 0;          // That cannot be read as planned.
  uint64_t eval_bad_rows = 0;
  double keys = 0;        // Distinct ones, of all sparse features.
  double keys_twice = 0;  // Those that come more than once.
  // Those that come once, twice, ...; the last one has those beyond, too.
  std::vector<double> keys_by_times = std::vector<double>(kTimesMax);
  bool admit_twice = false;        // Most keys come once: rows for those that come again.
  std::vector<std::string> notes;  // What a person should look at.
};

// `eval` is the profile of the label in the files to evaluate on; null where there are none.
// kInvalidArgument where there is no label that a model can learn, or where the wish does not fit
// the data: the message says which columns could be one, and what would be right.
Result<DataPlan> PlanData(const DataProfile& train, const DataProfile* eval, const DataWish& wish);

}  // namespace hdps
