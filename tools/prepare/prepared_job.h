// Writes the job file for a profile and a plan; it trains without changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_plan.h"
#include "tools/prepare/vocabulary_count.h"

namespace hdps {

struct JobWish {
  std::string name;
  std::string model;                     // A recipe; empty: the usual one for the task.
  std::vector<std::string> train, eval;  // Paths as the job file should have them.
  // Share of `train` to evaluate on if there is no `eval`.
  double validation_share = 0;
  // If not 0, that share is one of blocks of so many lines, under kBlocksSeed.
  uint64_t validation_block_lines = 0;
  // The values that have keys of their own; null: all. Its file lies beside the job.
  std::shared_ptr<const CountedVocabulary> vocabulary = nullptr;
  bool keeps_rows = false;  // The job finds its parsed rows in kRowsFolder beside it.
};
inline constexpr const char* kRowsFolder = "rows";

// The seed of a job whose rows are held out in blocks: that of MindSpore's model zoo
// (official/recommend/wide_and_deep, process_data.py).
inline constexpr uint64_t kBlocksSeed = 2020;

// Returns the recipe of the job.
std::string ModelOf(const DataPlan& plan, const JobWish& wish);
// Returns kInvalidArgument if the recipe cannot learn the task, or the data lacks what it needs.
Status CheckModel(const DataPlan& plan, const JobWish& wish);

// Returns the job as JSON. Requires: the wish has passed CheckModel.
std::string PreparedJob(const DataProfile& profile, const DataPlan& plan, const JobWish& wish);
// Returns the reasons for the job's settings, for the report: a title and a text each.
std::vector<std::pair<std::string, std::string>> JobReasons(const DataProfile& profile,
                                                            const DataPlan& plan,
                                                            const JobWish& wish);

// Rows and bytes of the job's tables, with optimizer state, once every key has a row.
struct TableEstimate {
  double rows = 0, bytes = 0;
};
TableEstimate EstimateTables(const DataPlan& plan, const JobWish& wish);

}  // namespace hdps
