// Draws the rows once; every step uploads them again if the model is on a device.
#include "benchmarks/cases/model/model_at_work.h"

#include <utility>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

constexpr double kZipf = 1.05;
constexpr uint64_t kCriteoVocabularies[] = {
    1'460,  583,   10'131'227, 2'202'608, 305, 24,      12'517,    633,    3,
    93'145, 5'683, 8'351'593,  3'194,     27,  14'992,  5'461'306, 10,     5'652,
    2'173,  4,     7'046'547,  18,        15,  286'181, 105,       142'572};

Result<Job> JobOf(const ModelCase& c, const BenchSetting& setting, const std::string& first_layer,
                  const std::string& precision) {
  return ParseJob(std::string(R"({"name": "model", "data": {"train": ["unread"], )") + c.data +
                      R"(}, "model": {"type": ")" + c.type + R"(", "device": ")" + setting.device +
                      R"(", "first_layer": ")" + first_layer + R"(", "precision": ")" + precision +
                      "\", " + c.model + "}}",
                  c.name, {});
}

Batch BatchOf(const Job& job, const ModelCase& c) {
  const FeatureNames names = FeaturesOf(job.data);
  Random random(1);
  Batch batch;
  const uint32_t examples = batch.num_examples = c.batch;
  batch.num_numeric = static_cast<uint32_t>(names.numeric.size());
  for (uint32_t i = 0; i < examples; ++i) {
    batch.labels.push_back(static_cast<float>(random.Below(2)));
    for (uint32_t j = 0; j < batch.num_numeric; ++j) {
      batch.numeric.push_back(static_cast<float>(random.Normal()));
    }
  }
  batch.sparse.resize(names.sparse.size());
  for (size_t f = 0; f < batch.sparse.size(); ++f) {
    SparseColumn& column = batch.sparse[f];
    const Zipf zipf(c.criteo_vocabularies ? kCriteoVocabularies[f] : c.vocabulary, kZipf);
    column.offsets.push_back(0);
    for (uint32_t i = 0; i < examples; ++i) {
      column.keys.push_back(MixBits((uint64_t{f} << 32) + zipf.Draw(random)));
      column.offsets.push_back(i + 1);
    }
  }
  return batch;
}

}  // namespace

ModelAtWork::ModelAtWork(Job job, const ModelCase& c, int threads)
    : job_(std::move(job)),
      executor_(NewTbbExecutor(threads)),
      batch_(BatchOf(job_, c)),
      finder_(job_) {}

Result<std::unique_ptr<ModelAtWork>> ModelAtWork::Make(const ModelCase& c,
                                                       const BenchSetting& setting,
                                                       const std::string& first_layer,
                                                       const std::string& precision) {
  HDPS_ASSIGN_OR_RETURN(Job job, JobOf(c, setting, first_layer, precision));
  auto made = std::make_unique<ModelAtWork>(std::move(job), c, setting.threads);
  HDPS_ASSIGN_OR_RETURN(made->model_, NewModel(made->job_, *made->executor_));
  made->model_->SetDense(made->model_->InitialDense(1));
  const size_t floats = made->model_->dense_floats();
  if (made->ops().on_host()) {
    made->host_gradients_.resize(floats);
    made->gradients_ = made->host_gradients_;
  } else {
    made->device_gradients_.emplace(&made->ops());
    made->gradients_ = {made->device_gradients_->Reserve(floats), floats};
  }
  made->FindKeys();
  made->TakeRows();
  made->Step();  // Warms up: allocates memory.
  return made;
}

double ModelAtWork::ExamplesPerSecond(int steps) {
  const double seconds = SecondsOf([&] {
    for (int step = 0; step < steps; ++step) Step();
    ops().Finish();
  });
  return static_cast<double>(batch_.num_examples) * steps / seconds;
}

size_t ModelAtWork::keys() const {
  size_t keys = 0;
  for (const SparseColumn& column : batch_.sparse) keys += column.keys.size();
  return keys;
}

void ModelAtWork::TakeRows() {
  rows_.resize(job_.tables.size());
  inputs_.resize(job_.tables.size());
  for (size_t t = 0; t < job_.tables.size(); ++t) {
    if (!has_keys(t)) continue;
    const KeySet& set = keys_of_table(t);
    Random random(t);
    rows_[t].resize(set.unique.size() * job_.tables[t].dim);
    for (float& x : rows_[t]) x = 0.01f * static_cast<float>(random.Normal());
    inputs_[t] = {&set, rows_[t]};
  }
}

}  // namespace hdps
