// A job as its file gives it, before its model is built.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/layers/layer_record.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"

namespace hdps {

// The contents of "model", before a recipe becomes tables and layers.
struct ModelText : ModelSpec, ModelRecipe {
  PolicySpec policy;  // This and the next five apply to each table of a recipe.
  WeightFormat weights = WeightFormat::kFp32;
  uint64_t vocab_cache_size = 0;
  SliceMode slice_mode = SliceMode::kBatch;
  std::vector<uint32_t> manual_shapes;
  uint32_t column_slices = 2;
  std::vector<TableSpec> tables;
  OptimizerSpec dense_optimizer = DenseOptimizer();
  // For the tables of a recipe, and for the weights of dense layers.
  ScheduleSpec wide_schedule, deep_schedule, dense_schedule;
  float wide_loss_l1 = 0, wide_loss_l2 = 0, deep_loss_l1 = 0, deep_loss_l2 = 0;
  float dense_loss_l1 = 0, dense_loss_l2 = 0;
  std::string dense_init = FanInits().front();  // For the dense layers of a recipe.
  // By the names of layers of a recipe: only the settings of PlacementSection() count.
  std::map<std::string, LayerSpec> layer_settings;
};

// The contents of "train".
struct TrainText : TrainSpec {
  ScheduleSpec schedule;  // For tables without a schedule; copied to them once the model is built.
};

// The contents of a job file, whose model is not built yet.
struct JobText {
  std::string name = Job().name;
  uint64_t seed = Job().seed;
  DataSpec data;
  ModelText model_text;
  TrainText train_text;
  ParallelSpec parallel;
  CheckpointSpec checkpoint;
  ClusterSpec cluster;
};

}  // namespace hdps
