// A job's sections, and the facts derived from them.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/metrics/metric.h"

namespace hdps {

struct Job::Sections {
  DataSpec data;
  ModelSpec model;
  TrainSpec train;
  ParallelSpec parallel;
  CheckpointSpec checkpoint;
  ClusterSpec cluster;
};

Job::Job()
    : sections_(std::make_unique<Sections>()),
      data(sections_->data),
      model(sections_->model),
      train(sections_->train),
      parallel(sections_->parallel),
      checkpoint(sections_->checkpoint),
      cluster(sections_->cluster) {}
Job::Job(const Job& other) : Job() { *this = other; }
Job& Job::operator=(const Job& other) {
  name = other.name;
  seed = other.seed;
  tables = other.tables;
  warnings = other.warnings;
  *sections_ = *other.sections_;
  return *this;
}
Job::~Job() = default;

bool IsTablesJob(const Job& job) { return job.model.type == kTablesType; }

Status NeedsLayers(const Job& job, const std::string& who) {
  if (!IsTablesJob(job)) return {};
  return Status(Code::kInvalidArgument,
                who +
                    " needs the layers of a model, and model.type = tables has none: the model is "
                    "your own program's, which joins the job with hdps.join; see docs/pytorch.md");
}

uint64_t ImagePixels(const DataSpec& data) {
  uint64_t pixels = 1;
  for (const uint32_t axis : data.image_shape) pixels *= axis;
  return pixels;
}

FeatureNames FeaturesOf(const DataSpec& data) {
  FeatureNames names;
  switch (data.format) {
    case DataFormat::kCsv:
    case DataFormat::kParquet:
    case DataFormat::kTfrecord:
    case DataFormat::kJsonl:
      for (const ColumnSpec& column : data.columns) {
        if (column.type == ColumnType::kNumeric) names.numeric.push_back(column.name);
        if (column.type == ColumnType::kCategorical || column.type == ColumnType::kMulti) {
          names.sparse.push_back(column.name);
        }
      }
      break;
    case DataFormat::kCriteo:
      for (int i = 1; i <= 13; ++i) names.numeric.push_back("I" + std::to_string(i));
      for (int c = 1; c <= 26; ++c) names.sparse.push_back("C" + std::to_string(c));
      break;
    case DataFormat::kLibsvm:
      names.sparse.push_back("features");
      break;
    case DataFormat::kIdx:
      for (const ColumnSpec& column : data.columns) {
        if (column.type == ColumnType::kNumeric) names.numeric.push_back(column.name);
      }
      for (uint64_t p = 0; data.columns.empty() && p < ImagePixels(data); ++p) {
        names.numeric.push_back("pixel" + std::to_string(p));
      }
      break;
    case DataFormat::kLibffm:
    case DataFormat::kLibfm:
      for (uint32_t f = 0; f < data.num_fields; ++f) {
        names.sparse.push_back("field" + std::to_string(f));
      }
      break;
  }
  for (const FeatureSpec& feature : data.features) names.sparse.push_back(feature.name);
  if (!data.kept_numbers.empty()) {
    const std::vector<std::string> all = std::exchange(names.numeric, {});
    for (const uint32_t column : data.kept_numbers) names.numeric.push_back(all[column]);
  }
  return names;
}

std::vector<TaskSpec> TasksOf(const ModelSpec& model) {
  if (!model.tasks.empty()) return model.tasks;
  TaskSpec task;
  task.loss = model.loss;
  task.positive_weight = model.positive_weight;
  return {task};
}

ScoreKind ScoreKindOf(LossKind loss) {
  switch (loss) {
    case LossKind::kSoftmax:
      return ScoreKind::kClass;
    case LossKind::kSquared:
      return ScoreKind::kNumber;
    case LossKind::kBpr:
    case LossKind::kSampledSoftmax:
      return ScoreKind::kRank;
    case LossKind::kLogloss:
      break;
  }
  return ScoreKind::kProbability;
}

bool HasColumn(const DataSpec& data, ColumnType type) {
  if (!HasNamedColumns(data.format)) return false;
  return std::ranges::find(data.columns, type, &ColumnSpec::type) != data.columns.end();
}

std::vector<TaskMetrics> MetricsOf(const Job& job) {
  std::vector<TaskMetrics> metrics;
  for (const TaskSpec& task : TasksOf(job.model)) {
    TaskMetrics& of_task = metrics.emplace_back();
    of_task.task = task.label;
    of_task.kind = ScoreKindOf(task.loss);
    of_task.words = job.train.metrics;
    if (of_task.words.empty()) {
      of_task.words = DefaultMetrics(of_task.kind, HasColumn(job.data, ColumnType::kGroup));
    }
    std::erase_if(of_task.words,
                  [&](const std::string& word) { return !HasMeaning(word, of_task.kind); });
  }
  return metrics;
}

std::string WhyNotOnCuda(const Job& job) {
  for (const TableSpec& table : job.tables) {
    if (!table.optimizer.record->is_own() || table.vocab_cache_size == 0) continue;
    return "table \"" + table.name + "\" keeps rows at the workers (vocab_cache_size = " +
           std::to_string(table.vocab_cache_size) + "), on a GPU where they have one, and its " +
           "optimizer " + OptimizerName(table.optimizer) +
           " is the program's own, which has no code for CUDA; set model.device = cpu, or leave "
           "vocab_cache_size out";
  }
  return "";
}

bool AtServers(const Job& job, const LayerSpec& layer) {
  return job.parallel.dense_exchange == DenseExchange::kServers ||
         layer.dense_exchange == WordOf(DenseExchange::kServers);
}

std::vector<std::string> CudaTargetsOf(const ModelSpec& model) {
  std::vector<std::string> places;
  if (model.dense_target == "cuda") places.emplace_back("model.dense_target");
  for (const LayerSpec& layer : model.layers) {
    if (layer.dense_target == "cuda") places.push_back("dense_target of layer " + layer.name);
  }
  return places;
}

std::string WhyDenseOnHost(const Job& job) { return WhyDenseOnHost(job, LayerSpec()); }

std::string WhyDenseOnHost(const Job& job, const LayerSpec& of) {
  if (job.tables.empty() || !job.tables.back().dense) return "the model has no dense tensors";
  const OptimizerSpec& rule = job.tables.back().optimizer;
  const ParallelSpec& parallel = job.parallel;
  const auto own = [](const LayerSpec& layer) { return layer.layerwise_parallel; };
  if (of.dense_target == "cpu") return "dense_target of layer \"" + of.name + "\" is cpu";
  if (of.dense_target == "auto" && job.model.dense_target == "cpu") {
    return "model.dense_target is cpu";
  }
  if (parallel.dense_exchange != DenseExchange::kAllreduce) {
    return "parallel.dense_exchange is servers, which update them; allreduce keeps them here";
  }
  if (AtServers(job, of)) {
    return "dense_exchange of layer \"" + of.name + "\" is servers, which update them";
  }
  if (rule.record->is_own()) {
    return std::string("the optimizer ") + OptimizerName(rule) +
           " is the program's own, with no code for CUDA";
  }
  if (RecordOf(rule).whole_tensors) {
    return std::string("the optimizer ") + OptimizerName(rule) + " changes whole tensors";
  }
  if (parallel.optimizer.enabled) return "parallel.enable_parallel_optimizer is true";
  if (job.train.clip_norm > 0) return "train.clip_norm takes the exact norm of all gradients";
  if (!parallel.gradient_fp32_sync) return "parallel.gradient_fp32_sync is false";
  if (std::ranges::any_of(job.model.layers, own)) return "a layer has layerwise_parallel";
  const ParallelMode mode = parallel.parallel_mode;
  if (mode == ParallelMode::kSemiAuto || mode == ParallelMode::kAuto) {
    return "parallel.parallel_mode may cut dense tensors";
  }
  return "";
}

}  // namespace hdps
