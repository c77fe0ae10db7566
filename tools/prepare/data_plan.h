// Plans a job for data files: types, transforms, buckets and the label, with the reasons.
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

struct CountedVocabulary;

struct DataPlan {
  static constexpr size_t kTimesMax = 16;

  std::vector<ColumnPlan> columns;  // [profile.columns]
  TaskKind task = TaskKind::kBinary;
  // Index into `columns`; kNoColumn: no label; only with kPositivesOnly.
  size_t label = 0;
  uint32_t num_classes = 2;  // kClasses; the label's spec has their texts, if they have any.
  double label_mean = 0;     // kRating: mean of the labels.
  double label_deviation = 0;
  // The columns that say by name and values which user and item a row is about; kNoColumn: none.
  // They are set for rankings and for all data that has both. Both are categorical; the user may be
  // of type group instead.
  size_t user = kNoColumn, item = kNoColumn;
  // kPositivesOnly: values for data.item_features and data.negatives.per_positive.
  std::vector<std::string> item_features;
  uint32_t negatives = 0;
  std::vector<TaskKind> choices;  // As in LabelPlan.
  double positive_share = 0;      // Share of label 1 in the rows with a label.
  std::string missing;            // The text that stands for a missing cell.
  uint64_t bad_rows = 0;          // Rows that cannot be read as planned.
  uint64_t eval_bad_rows = 0;
  double keys = 0;        // Distinct keys of all sparse features.
  double keys_twice = 0;  // Distinct keys that occur more than once.
  // Number of keys that occur once, twice, ...; the last element also counts all more frequent
  // keys.
  std::vector<double> keys_by_times = std::vector<double>(kTimesMax);
  bool admit_twice = false;        // Most keys occur once, so a key gets a row when it comes again.
  std::vector<std::string> notes;  // Advice what to check.
};

// Takes the keys of the counted values in place of the estimates. Values that come seldom share a
// key then, so none has to come twice to get a row.
void CountKeysOf(const CountedVocabulary& counted, DataPlan* plan);

// Plans the job. `eval` is the profile of the label in the evaluation files, or null if there are
// none. Returns kInvalidArgument if no label can be learned or the wish does not fit the data; the
// message names the columns that could be the label, and the right value.
Result<DataPlan> PlanData(const DataProfile& train, const DataProfile* eval, const DataWish& wish);

}  // namespace hdps
