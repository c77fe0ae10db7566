// The sections of the job file, and the steps from its text to a checked Job.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_registry.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/text/setting.h"

namespace hdps {

// What stands under "model", before a recipe becomes tables and layers.
struct ModelText : ModelSpec, ModelRecipe {
  PolicySpec policy;  // This and the five below: of each table of a recipe.
  WeightFormat weights = WeightFormat::kFp32;
  uint64_t vocab_cache_size = 0;
  SliceMode slice_mode = SliceMode::kBatch;
  std::vector<uint32_t> manual_shapes;
  uint32_t column_slices = 2;
  std::vector<TableSpec> tables;
  OptimizerSpec dense_optimizer = DenseOptimizer();
  // Of the tables of a recipe, and of the weights of dense layers.
  ScheduleSpec wide_schedule, deep_schedule, dense_schedule;
  float wide_loss_l1 = 0, wide_loss_l2 = 0, deep_loss_l1 = 0, deep_loss_l2 = 0;
  float dense_loss_l1 = 0, dense_loss_l2 = 0;
  std::string dense_init = FanInits().front();  // Of the dense layers of a recipe.
};

// What stands under "train".
struct TrainText : TrainSpec {
  ScheduleSpec schedule;  // Of tables without one of their own: once the model is built, in them.
};

// What stands in a job file. Its model has not been built yet.
struct JobText : Job {
  ModelText model_text;
  TrainText train_text;
};

Section JobSection(const JobRegistry& registry);  // Of JobText: the whole.

Section DataSection();
Section ModelSection(const JobRegistry& registry);  // Of ModelText.
Section ScheduleSection();
Section OptimizerSection(const OptimizerRegistry& optimizers);
Section LayerSection(const LayerRegistry& layers);

// Fills model and tables from what stands under "model"; needs job->data.
Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job);

// Gives each table that the job text gives no schedule `all`, that of train; checks all.
Status FillSchedules(const JobSource& source, const ScheduleSpec& all, Job* job);
// Labels, weights, groups and items against the losses and metrics that need them.
Status CheckLosses(const JobSource& source, Job* job);

// Sets what follows from how tables are cut over the servers, and refuses what cannot be cut so.
Status SliceTables(const JobSource& source, Job* job);

// The tuples of parallel.dataset_strategy against what they are for.
Status CheckDatasetSlices(const JobSource& source, const ParallelSpec& parallel);
// The columns of images against their shape; what holds of all columns was checked.
Status CheckImages(const JobSource& source, const DataSpec& data);

// Builds the model and checks the whole; normalises what has two spellings (ssp with bound 0 is
// sync).
Status CheckJob(const JobSource& source, const JobText& text, Job* job);

// Names what the data has and the model cannot use. The job has passed every other check.
void WarnOfInputs(Job* job);

}  // namespace hdps
