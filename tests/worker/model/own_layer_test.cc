// Tests a layer that a program adds itself: job files know it, and it is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/spec/model_spec.h"
#include "tests/worker/model/model_fixture.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kJob[] = R"({
  "name": "own",
  "data": {"train": ["a.csv"], "columns": [
    {"name": "y", "type": "label"}, {"name": "x", "type": "numeric"},
    {"name": "z", "type": "numeric"}, {"name": "c"}, {"name": "d"}]},
  "model": {"type": "graph", "tables": [{"name": "t", "dim": 4}], "device": "cpu", "layers": [
    {"name": "e", "kind": "embedding", "table": "t"},
    {"name": "own", "kind": "powers", "inputs": ["e"], "power": 2},
    {"name": "logit", "inputs": ["own"], "units": 1}]}
})";

// y = x^power times a gain per column, in plain loops on the host.
class PowersLayer : public Layer {
 public:
  explicit PowersLayer(const LayerSite& site)
      : place_(site.place), power_(site.Number("power")), gain_(site.TensorAt(0)) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const Matrix x = pass.places[self.inputs[0]].value;
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t j = 0; j < x.cols; ++j) {
        self.value.Row(r)[j] = pass.dense[gain_ + j] * Power(x.Row(r)[j], power_);
      }
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    const Matrix x = input.value, dy = self.gradient;
    float* gain_gradient = pass.dense_gradients + gain_;
    std::fill_n(gain_gradient, x.cols, 0.0f);
    const Write write = input.NextGradient();
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t j = 0; j < x.cols; ++j) {
        gain_gradient[j] += dy.Row(r)[j] * Power(x.Row(r)[j], power_);
        const float slope =
            pass.dense[gain_ + j] * static_cast<float>(power_) * Power(x.Row(r)[j], power_ - 1);
        float& dx = input.gradient.Row(r)[j];
        dx = (write == Write::kAdd ? dx : 0.0f) + dy.Row(r)[j] * slope;
      }
    }
  }

 private:
  static float Power(float x, double power) { return std::pow(x, static_cast<float>(power)); }

  uint32_t place_;
  double power_;
  size_t gain_;
};

LayerRecord Powers() {
  LayerRecord record;
  record.kind = "powers";
  record.gives = "x to a power, times a gain";
  record.numbers = {{"power", 1, 8, 1, "What x is raised to."}};
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape;
    shape.width = question.inputs[0].shape.width;
    if (shape.width > 64) return LayerProblem{"inputs", "at most 64 columns"};
    shape.learns = true;
    shape.tensors = {{"gain", {shape.width}, {InitKind::kConstant, 1.0f}}};
    return shape;
  };
  record.make = [](const LayerSite& site) -> std::unique_ptr<Layer> {
    return std::make_unique<PowersLayer>(site);
  };
  return record;
}

JobRegistry WithPowers() {
  JobRegistry registry = BuiltInRegistry();
  EXPECT_TRUE(registry.layers.Add(Powers()).ok());
  return registry;
}

TEST(OwnLayerTest, IsAKeyOfItsProgramsJobs) {
  const JobRegistry registry = WithPowers();
  const Result<Job> job = ParseJob(kJob, "own.json", {}, registry);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->model.layers[1].numbers.at("power"), 2.0);
  EXPECT_EQ(ParseJob(kJob, "own.json",
                     {"model.layers.1={\"name\":\"own\",\"kind\":\"powers\","
                      "\"inputs\":[\"e\"]}"},
                     registry)
                ->model.layers[1]
                .numbers.at("power"),
            1.0)
      << "the default";
  const std::string printed = PrintJob(*job);
  EXPECT_THAT(printed, HasSubstr("\"power\": 2"));
  const Result<Job> again = ParseJob(printed, "own.json", {}, registry);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(JobDigest(*again), JobDigest(*job));
  const auto refusal = [&](const std::string& text) {
    return ParseJob(kJob, "own.json", {text}, registry).status().message();
  };
  EXPECT_THAT(refusal("model.layers.1.power=9"), HasSubstr("a number from 1 to 8"));
  EXPECT_THAT(refusal("model.layers.1.kind=power"), HasSubstr("did you mean \"powers\"?"));
  EXPECT_THAT(refusal("model.tables.0.dim=40"), HasSubstr("layers.1.inputs: at most 64 columns"));
  EXPECT_THAT(ParseJob(kJob, "own.json", {}).status().message(),
              AllOf(HasSubstr("model.layers.1.kind"), HasSubstr("embedding, numeric, concat")))
      << "another program does not know it";
}

TEST(OwnLayerTest, IsTrained) {
  const Result<Job> job = ParseJob(kJob, "own.json", {}, WithPowers());
  ASSERT_TRUE(job.ok()) << job.status().message();
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ModelRun run(*job, *executor);
  EXPECT_THAT(run.model().Describe(), HasSubstr("layer own kind=powers"));
  const Batch batch = TestBatch(*job, {64, 1, false, 3});
  const double before = run.Step(batch).loss_sum;
  for (int step = 0; step < 50; ++step) {
    const ModelRun::Gradients at = run.Step(batch);
    for (size_t i = 0; i < at.dense.size(); ++i) run.dense()[i] -= 0.01f * at.dense[i];
    run.row_shift()[0].resize(at.rows[0].size());
    for (size_t i = 0; i < at.rows[0].size(); ++i) run.row_shift()[0][i] -= 0.01f * at.rows[0][i];
  }
  EXPECT_LT(run.Step(batch).loss_sum, 0.95 * before);
}

// Returns a registry of PowersLayer with a choice besides its number.
JobRegistry WithChoice() {
  JobRegistry registry = BuiltInRegistry();
  LayerRecord record = Powers();
  record.words = {{"rule", {"plain", "squared"}, "How."}};
  EXPECT_TRUE(registry.layers.Add(record).ok());
  return registry;
}

TEST(OwnLayerTest, MayHaveChoices) {
  const JobRegistry registry = WithChoice();
  const auto parsed = [&](const std::string& json, const std::vector<std::string>& set) {
    return ParseJob(json, "own.json", set, registry);
  };
  const Result<Job> standard = parsed(kJob, {});
  ASSERT_TRUE(standard.ok()) << standard.status().message();
  EXPECT_EQ(standard->model.layers[1].words.at("rule"), "plain") << "the first is the default";
  const Result<Job> job = parsed(kJob, {"model.layers.1.rule=squared"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  const LayerWord& rule = registry.layers.Find("powers")->words[0];
  EXPECT_EQ(WordOf(job->model.layers[1], rule), "squared");
  EXPECT_NE(JobDigest(*job), JobDigest(*standard)) << "it is another model";
  const std::string printed = PrintJob(*job);
  EXPECT_THAT(printed, HasSubstr("\"rule\": \"squared\""));
  EXPECT_EQ(JobDigest(*parsed(printed, {})), JobDigest(*job));
  EXPECT_THAT(parsed(kJob, {"model.layers.1.rule=square"}).status().message(),
              AllOf(HasSubstr("model.layers.1.rule"), HasSubstr("one of plain, squared"),
                    HasSubstr("did you mean \"squared\"?")));
  EXPECT_THAT(parsed(kJob, {"model.layers.0.rule=squared"})->warnings,
              testing::Contains(HasSubstr("model.layers.0.rule is ignored: it counts only where "
                                          "kind is powers")));
}

TEST(OwnLayerTest, MistakenRecordsAreRefused) {
  LayerRegistry layers = WithPowers().layers;
  EXPECT_THAT(layers.Add(Powers()).message(), HasSubstr("all different"));
  LayerRecord record = Powers();
  record.kind = "roots";
  record.numbers[0].max = 7;
  EXPECT_THAT(layers.Add(record).message(),
              AllOf(HasSubstr("\"power\""), HasSubstr("\"powers\""), HasSubstr("another word")));
  record.numbers = {{"root", 1, 8, 9, ""}};
  EXPECT_THAT(layers.Add(record).message(), HasSubstr("not in its range"));
  record.numbers.clear();
  record.words = {{"rule", {"plain", "squared"}, ""}};
  EXPECT_TRUE(layers.Add(record).ok());
  record.kind = "logs";
  EXPECT_TRUE(layers.Add(record).ok()) << "the same choice";
  record.kind = "sines";
  record.words[0].words = {"squared", "plain"};
  EXPECT_THAT(layers.Add(record).message(),
              AllOf(HasSubstr("\"rule\""), HasSubstr("\"roots\""), HasSubstr("another name")));
  record.words = {{"none", {}, ""}};
  EXPECT_THAT(layers.Add(record).message(), HasSubstr("nothing to choose from"));
  record.numbers.clear();
  record.measure = nullptr;
  EXPECT_THAT(layers.Add(record).message(), HasSubstr("no measure"));
}

}  // namespace
}  // namespace hdps
