// Computes steps of a model on one batch and given rows, without servers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "worker/model/model.h"

namespace hdps {

// A model and its data. The default data has Criteo's shape: 13 numbers and 26 keys per example,
// each key from `vocabulary` values by Zipf's law with exponent 1.05. `data` may replace it.
struct ModelCase {
  const char* name;
  uint32_t batch;
  int steps;          // Steps per sample.
  const char* data;   // JSON: members of the job's data.
  const char* model;  // JSON: members of the job's model.
  // Gives each field as many values as in Criteo's Kaggle logs, in place of `vocabulary`.
  bool criteo_vocabularies = false;
  uint64_t vocabulary = 100'000;
  const char* type = "wide_deep";  // The recipe.
};

class ModelAtWork {
 public:
  static Result<std::unique_ptr<ModelAtWork>> Make(const ModelCase& c, const BenchSetting& setting,
                                                   const std::string& first_layer,
                                                   const std::string& precision = "fp32");
  ModelAtWork(Job job, const ModelCase& c, int threads);

  void FindKeys() { finder_.Find(batch_, &sets_); }
  void Step() { model_->Step(batch_, inputs_, &result_, gradients_); }
  // Runs so many steps and waits until the device is idle.
  double ExamplesPerSecond(int steps);
  const Job& job() const { return job_; }
  const Batch& batch() const { return batch_; }
  DenseOps& ops() { return model_->ops(); }
  // Is false for a table of dense weights.
  bool has_keys(size_t table) const { return finder_.table_keys()[table] >= 0; }
  const KeySet& keys_of_table(size_t table) const {
    return sets_[static_cast<size_t>(finder_.table_keys()[table])];
  }
  size_t keys() const;
  size_t unique_keys() const { return sets_[0].unique.size(); }

 private:
  void TakeRows();

  const Job job_;
  const std::unique_ptr<Executor> executor_;
  const Batch batch_;
  KeyFinder finder_;
  std::vector<KeySet> sets_;
  std::unique_ptr<Model> model_;
  std::vector<std::vector<float>> rows_;  // [tables]
  std::vector<TableInput> inputs_;
  std::vector<float> host_gradients_;
  std::optional<DeviceArray> device_gradients_;
  DenseGradients gradients_;  // Refers to one of the two arrays above: that of the model's device.
  StepResult result_;
};

}  // namespace hdps
