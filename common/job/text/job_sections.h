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

template <typename Struct>
class SettingTable;  // setting_table.h
// The rows of "parallel" that say how layers lie over the workers.
void AddStrategySettings(SettingTable<ParallelSpec>* parallel);

Section DataSection();
Section ModelSection(const JobRegistry& registry);  // Of ModelText.
Section ScheduleSection();
Section OptimizerSection(const OptimizerRegistry& optimizers);
Section LayerSection(const LayerRegistry& layers);
template <typename Struct>
class SettingTable;
// The settings of how dense gradients travel under allreduce, behind dense_exchange.
void AddDenseExchange(SettingTable<ParallelSpec>* parallel);

// Fills model and tables from what stands under "model"; needs job->data.
Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job);

// Gives each table that the job text gives no schedule `all`, that of train; checks all.
Status FillSchedules(const JobSource& source, const ScheduleSpec& all, Job* job);
// Labels, weights, groups and items against the losses and metrics that need them.
Status CheckLosses(const JobSource& source, Job* job);

// Layers' shards, blocks and the search against the mode, and each for itself. How they fit the
// number of workers is known when that is: common/planning/strategy_of_job.h.
Status CheckStrategySettings(const JobSource& source, const Job& job);
// Those settings, and what layers say of it, against each other. The model has been built.
Status CheckDenseExchange(const JobSource& source, Job* job);

// Micro-batches and copies of the model, and their other spelling. `worker_rows`: the rows a worker
// has of a step.
Status CheckStepParts(const JobSource& source, uint32_t worker_rows, Job* job);
// Layers that exchange something within a step need all workers in the same one.
Status CheckMeetings(const JobSource& source, const Job& job);
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
