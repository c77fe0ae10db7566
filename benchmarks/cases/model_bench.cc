// How fast the dense side of a worker computes, without servers: a model's step beside the matrix
// products in it, with the first layer plain and on unique rows, the search for distinct keys, and
// what batch normalization and dropout cost.
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/yardsticks/model_products.h"
#include "common/base/hash.h"
#include "common/job/job.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "tools/plan/job_shape.h"
#include "tools/synthetic/zipf.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

constexpr char kBench[] = "model";

// Criteo's shape: 13 numbers and 26 keys of 100,000 values by Zipf's law, with exponent 1.05; or of
// as many values as each field of Criteo's Kaggle logs has.
constexpr uint64_t kVocabulary = 100'000;
constexpr double kZipf = 1.05;
constexpr uint64_t kCriteoVocabularies[] = {
    1'460,  583,   10'131'227, 2'202'608, 305, 24,      12'517,    633,    3,
    93'145, 5'683, 8'351'593,  3'194,     27,  14'992,  5'461'306, 10,     5'652,
    2'173,  4,     7'046'547,  18,        15,  286'181, 105,       142'572};

struct Case {
  const char* name;
  uint32_t batch;
  int steps;  // A sample.
  const char* data;
  const char* model;
  bool criteo_vocabularies = false;
};
const Case kCases[] = {
    {"large_mlp_dim16", 4096, 3, R"("format": "criteo")",
     R"("embedding_dim": 16, "hidden": [1024, 512, 256, 128])"},
    {"criteo_values_dim16", 4096, 3, R"("format": "criteo")",
     R"("embedding_dim": 16, "hidden": [1024, 512, 256, 128])", true},
    {"large_mlp_dim80_39_keys", 4096, 1, R"("format": "libffm", "num_fields": 39)",
     R"("embedding_dim": 80, "hidden": [1024, 512, 256, 128])"},
    {"small_mlp_dim16", 4096, 10, R"("format": "criteo")",
     R"("embedding_dim": 16, "hidden": [64, 32])"},
    {"peers_mlp_dim16", 1024, 10, R"("format": "libffm", "num_fields": 26)",
     R"("embedding_dim": 16, "hidden": [256, 128, 64])"},
};

Result<Job> JobOf(const Case& c, const BenchSetting& setting, const std::string& first_layer,
                  const std::string& precision) {
  return ParseJob(std::string(R"({"name": "model", "data": {"train": ["unread"], )") + c.data +
                      R"(}, "model": {"type": "wide_deep", "device": ")" + setting.device +
                      R"(", "first_layer": ")" + first_layer + R"(", "precision": ")" + precision +
                      "\", " + c.model + "}}",
                  kBench, {});
}

Batch BatchOf(const Job& job, const Case& c) {
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
    const Zipf zipf(c.criteo_vocabularies ? kCriteoVocabularies[f] : kVocabulary, kZipf);
    column.offsets.push_back(0);
    for (uint32_t i = 0; i < examples; ++i) {
      column.keys.push_back(MixBits((uint64_t{f} << 32) + zipf.Draw(random)));
      column.offsets.push_back(i + 1);
    }
  }
  return batch;
}

// A model with the rows of one batch.
class ModelAtWork {
 public:
  static Result<std::unique_ptr<ModelAtWork>> Make(const Case& c, const BenchSetting& setting,
                                                   const std::string& first_layer,
                                                   const std::string& precision = "fp32") {
    HDPS_ASSIGN_OR_RETURN(Job job, JobOf(c, setting, first_layer, precision));
    auto made = std::make_unique<ModelAtWork>(std::move(job), c, setting.threads);
    HDPS_ASSIGN_OR_RETURN(made->model_, NewModel(made->job_, *made->executor_));
    made->model_->SetDense(made->model_->InitialDense(1));
    made->gradients_.resize(made->model_->dense_floats());
    made->FindKeys();
    made->TakeRows();
    made->Step();  // Memory is there from now on.
    return made;
  }
  ModelAtWork(Job job, const Case& c, int threads)
      : job_(std::move(job)),
        executor_(NewTbbExecutor(threads)),
        batch_(BatchOf(job_, c)),
        finder_(job_) {}

  void FindKeys() { finder_.Find(batch_, &sets_); }
  void Step() { model_->Step(batch_, inputs_, &result_, gradients_); }
  double ExamplesPerSecond(int steps) {
    const double seconds = SecondsOf([&] {
      for (int step = 0; step < steps; ++step) Step();
    });
    return static_cast<double>(batch_.num_examples) * steps / seconds;
  }
  const Job& job() const { return job_; }
  size_t keys() const {
    size_t keys = 0;
    for (const SparseColumn& column : batch_.sparse) keys += column.keys.size();
    return keys;
  }
  size_t unique_keys() const { return sets_[0].unique.size(); }

 private:
  void TakeRows() {
    rows_.resize(job_.tables.size());
    inputs_.resize(job_.tables.size());
    for (size_t t = 0; t < job_.tables.size(); ++t) {
      if (finder_.table_keys()[t] < 0) continue;
      const KeySet& set = sets_[static_cast<size_t>(finder_.table_keys()[t])];
      Random random(t);
      rows_[t].resize(set.unique.size() * job_.tables[t].dim);
      for (float& x : rows_[t]) x = 0.01f * static_cast<float>(random.Normal());
      inputs_[t] = {&set, rows_[t]};
    }
  }

  const Job job_;
  const std::unique_ptr<Executor> executor_;
  const Batch batch_;
  KeyFinder finder_;
  std::vector<KeySet> sets_;
  std::unique_ptr<Model> model_;
  std::vector<std::vector<float>> rows_;  // [tables]
  std::vector<TableInput> inputs_;
  std::vector<float> gradients_;
  StepResult result_;
};

Status RunCase(const Case& c, const BenchSetting& setting, BenchReport& report) {
  const char* const choices[] = {"plain", "unique_rows", "auto"};
  std::vector<std::unique_ptr<ModelAtWork>> models;
  for (const char* choice : choices) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ModelAtWork> model,
                          ModelAtWork::Make(c, setting, choice));
    models.push_back(std::move(model));
  }
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(models[0]->job()));
  HDPS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ModelProducts> products,
      ModelProducts::Make(setting.device, setting.threads, shape.products, c.batch));
  products->Step();
  const int steps = setting.quick ? 1 : c.steps;
  const auto samples =
      InTurns(setting.repeats, {[&] { return models[0]->ExamplesPerSecond(steps); },
                                [&] { return models[1]->ExamplesPerSecond(steps); },
                                [&] { return models[2]->ExamplesPerSecond(steps); },
                                [&] { return products->ExamplesPerSecond(steps); },
                                [&] { return 1e3 * SecondsOf([&] { models[0]->FindKeys(); }); }});
  for (size_t i = 0; i < std::size(choices); ++i) {
    report.AddBeside(kBench, c.name, std::string("first layer ") + choices[i], "examples/s",
                     samples[i], "matrix products alone", samples[3]);
  }
  report.Add(kBench, c.name, "distinct keys", "ms", samples[4]);
  report.Add(
      kBench, c.name, "distinct share of the keys", "",
      {static_cast<double>(models[0]->unique_keys()) / static_cast<double>(models[0]->keys())});
  return Status();
}

// The same in bf16, where this machine multiplies so.
Status RunInBf16(const Case& c, const BenchSetting& setting, BenchReport& report) {
  const Bf16Products bf16 = Bf16ProductsOfThisMachine();
  if (bf16 == Bf16Products::kNone || setting.device == "cuda") return Status();
  HDPS_ASSIGN_OR_RETURN(const auto plain, ModelAtWork::Make(c, setting, "plain", "bf16"));
  HDPS_ASSIGN_OR_RETURN(const auto rows, ModelAtWork::Make(c, setting, "unique_rows", "bf16"));
  HDPS_ASSIGN_OR_RETURN(const auto chosen, ModelAtWork::Make(c, setting, "auto", "bf16"));
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(plain->job()));
  HDPS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ModelProducts> products,
      ModelProducts::Make(setting.device, setting.threads, shape.products, c.batch, bf16));
  products->Step();
  const int steps = setting.quick ? 1 : 2 * c.steps;
  const auto samples =
      InTurns(setting.repeats, {[&] { return plain->ExamplesPerSecond(steps); },
                                [&] { return rows->ExamplesPerSecond(steps); },
                                [&] { return chosen->ExamplesPerSecond(steps); },
                                [&] { return products->ExamplesPerSecond(steps); }});
  const std::string by = "bf16 by " + std::string(Bf16ProductsName(bf16)) + ", first layer ";
  const char* const choices[] = {"plain", "unique_rows in fp32", "auto"};
  for (size_t i = 0; i < std::size(choices); ++i) {
    report.AddBeside(kBench, c.name, by + choices[i], "examples/s", samples[i],
                     "bf16 products alone", samples[3]);
  }
  return Status();
}

// The large MLP with batch normalization and dropout of every hidden layer, each beside the same
// step without them.
constexpr char kRegularised[] = "regularised_mlp";
Status RunRegularised(const BenchSetting& setting, BenchReport& report) {
  const char* const more[] = {"", R"(, "dropout": 0.2)", R"(, "batch_norm": true)",
                              R"(, "batch_norm": true, "dropout": 0.2)"};
  const char* const names[] = {"plain", "dropout", "batch_norm", "batch_norm and dropout"};
  std::vector<std::unique_ptr<ModelAtWork>> models;
  for (const char* settings : more) {
    Case c = kCases[0];
    const std::string model = c.model + std::string(settings);
    c.model = model.c_str();
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ModelAtWork> made,
                          ModelAtWork::Make(c, setting, "plain"));
    models.push_back(std::move(made));
  }
  const int steps = setting.quick ? 1 : kCases[0].steps;
  const auto samples =
      InTurns(setting.repeats, {[&] { return models[0]->ExamplesPerSecond(steps); },
                                [&] { return models[1]->ExamplesPerSecond(steps); },
                                [&] { return models[2]->ExamplesPerSecond(steps); },
                                [&] { return models[3]->ExamplesPerSecond(steps); }});
  for (size_t i = 1; i < std::size(names); ++i) {
    report.AddBeside(kBench, kRegularised, names[i], "examples/s", samples[i], "without",
                     samples[0]);
  }
  return Status();
}

}  // namespace

Status RunModelBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const Case& c : kCases) {
    if (!setting.Wants(c.name)) continue;
    SayProgress(kBench, c.name);
    HDPS_RETURN_IF_ERROR(RunCase(c, setting, report));
    HDPS_RETURN_IF_ERROR(RunInBf16(c, setting, report));
  }
  if (setting.Wants(kRegularised)) {
    SayProgress(kBench, kRegularised);
    HDPS_RETURN_IF_ERROR(RunRegularised(setting, report));
  }
  return Status();
}

}  // namespace hdps
