// The sections of the job file, and the steps from its text to a checked Job.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_registry.h"
#include "common/job/model_zoo.h"
#include "common/job/text/setting.h"

namespace hdps {

// What stands under "model", before a recipe becomes tables and layers.
struct ModelText : ModelSpec, ModelRecipe {
  PolicySpec policy;  // This and the two below: of each table of a recipe.
  WeightFormat weights = WeightFormat::kFp32;
  uint64_t vocab_cache_size = 0;
  std::vector<TableSpec> tables;
  OptimizerSpec dense_optimizer = DenseOptimizer();
};

// What stands in a job file. Its model has not been built yet.
struct JobText : Job {
  ModelText model_text;
};

Section JobSection(const JobRegistry& registry);  // Of JobText: the whole.

Section DataSection();
Section ModelSection(const JobRegistry& registry);  // Of ModelText.
Section OptimizerSection(const OptimizerRegistry& optimizers);
Section LayerSection(const LayerRegistry& layers);

// Fills model and tables from what stands under "model"; needs job->data.
Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job);

// Labels, weights, groups and items against the losses and metrics that need them.
Status CheckLosses(const JobSource& source, Job* job);

// Builds the model and checks the whole; normalises what has two spellings (ssp with bound 0 is
// sync).
Status CheckJob(const JobSource& source, const ModelText& model, Job* job);

// Names what the data has and the model cannot use. The job has passed every other check.
void WarnOfInputs(Job* job);

}  // namespace hdps
