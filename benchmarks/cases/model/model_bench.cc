// Measures the dense side of a worker without servers: a model's step beside its matrix products,
// with the first layer plain and on unique rows, the search for distinct keys, and the cost of
// batch normalization and dropout.
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/cases/model/model_at_work.h"
#include "benchmarks/yardsticks/model_products.h"
#include "tools/plan/job_shape.h"

namespace hdps {
namespace {

constexpr char kBench[] = "model";

const ModelCase kCases[] = {
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

Status RunCase(const ModelCase& c, const BenchSetting& setting, BenchReport& report) {
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
  const auto samples = InterleavedSamples(
      setting.repeats, {[&] { return models[0]->ExamplesPerSecond(steps); },
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

// Runs the case in bf16, if this machine has bf16 products.
Status RunInBf16(const ModelCase& c, const BenchSetting& setting, BenchReport& report) {
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
      InterleavedSamples(setting.repeats, {[&] { return plain->ExamplesPerSecond(steps); },
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

// Recipes whose own layers take most of a step, on data of Criteo's shape.
constexpr const char* kRecipes[] = {"dcn_v2", "dcn_mix", "xdeepfm", "fibinet"};
Status RunRecipe(const char* recipe, const BenchSetting& setting, BenchReport& report) {
  ModelCase c{recipe, 2048, 2, R"("format": "criteo")",
              R"("embedding_dim": 16, "hidden": [256, 128, 64])"};
  c.type = recipe;
  HDPS_ASSIGN_OR_RETURN(const auto model, ModelAtWork::Make(c, setting, "auto"));
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(model->job()));
  HDPS_ASSIGN_OR_RETURN(const auto products, ModelProducts::Make(setting.device, setting.threads,
                                                                 shape.products, c.batch));
  products->Step();
  const int steps = setting.quick ? 1 : c.steps;
  // Microseconds of all threads together for one example.
  const auto time_of = [&](auto& work) {
    const double begin = ProcessCpuSeconds();
    for (int step = 0; step < steps; ++step) work.Step();
    return 1e6 * (ProcessCpuSeconds() - begin) / (steps * static_cast<double>(c.batch));
  };
  const auto samples = InterleavedSamples(
      setting.repeats, {[&] { return time_of(*model); }, [&] { return time_of(*products); }});
  report.AddBeside(kBench, c.name, "processor time of a step", "us/example", samples[0],
                   "matrix products alone", samples[1]);
  return Status();
}

// The large MLP with batch normalization and dropout of every hidden layer, each beside the step
// without them.
constexpr char kRegularised[] = "regularised_mlp";
Status RunRegularised(const BenchSetting& setting, BenchReport& report) {
  const char* const more[] = {"", R"(, "dropout": 0.2)", R"(, "batch_norm": true)",
                              R"(, "batch_norm": true, "dropout": 0.2)"};
  const char* const names[] = {"plain", "dropout", "batch_norm", "batch_norm and dropout"};
  std::vector<std::unique_ptr<ModelAtWork>> models;
  for (const char* settings : more) {
    ModelCase c = kCases[0];
    const std::string model = c.model + std::string(settings);
    c.model = model.c_str();
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ModelAtWork> made,
                          ModelAtWork::Make(c, setting, "plain"));
    models.push_back(std::move(made));
  }
  const int steps = setting.quick ? 1 : kCases[0].steps;
  const auto samples =
      InterleavedSamples(setting.repeats, {[&] { return models[0]->ExamplesPerSecond(steps); },
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
  for (const ModelCase& c : kCases) {
    if (!setting.Wants(c.name)) continue;
    PrintProgress(kBench, c.name);
    HDPS_RETURN_IF_ERROR(RunCase(c, setting, report));
    HDPS_RETURN_IF_ERROR(RunInBf16(c, setting, report));
  }
  for (const char* recipe : kRecipes) {
    if (!setting.Wants(recipe)) continue;
    PrintProgress(kBench, recipe);
    HDPS_RETURN_IF_ERROR(RunRecipe(recipe, setting, report));
  }
  if (setting.Wants(kRegularised)) {
    PrintProgress(kBench, kRegularised);
    HDPS_RETURN_IF_ERROR(RunRegularised(setting, report));
  }
  return Status();
}

}  // namespace hdps
