// Tests the mapping of models to ONNX by its own checker and shape inference; what they compute is
// compared by tests/end_to_end/onnx_test.py.
#include "tools/export/onnx/onnx_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "common/job/job_registry.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "tests/worker/model/model_fixture.h"
#include "tests/worker/model/sequence_graphs.h"
#include "worker/model/graph.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

using testing::HasSubstr;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

LayerOptions OfUnits(uint32_t units) {
  LayerOptions options;
  options.units = units;
  return options;
}

std::vector<Job> Jobs() {
  std::vector<Job> jobs;
  for (const RecipeRecord& recipe : Recipes()) jobs.push_back(TestJob(recipe.word));
  jobs.push_back(TestJob("pnn", {{"products", "both"}}));
  jobs.push_back(TestJob("xdeepfm", {{"cin_split", "none"}}));
  jobs.push_back(TestJob("fibinet", {{"bilinear", "all"}}));
  jobs.push_back(TestJob("fibinet", {{"bilinear", "interaction"}}));
  for (const NamedJob& graph : SequenceGraphs()) jobs.push_back(graph.job);
  for (const auto& [activation, word] : WordsOf(Activation{})) {
    jobs.push_back(NormalizedGraph(activation, 0.5));
    jobs.push_back(BatchNormGraph(activation, 0));
  }
  LayerOptions max, mean, plain;
  max.table = mean.table = plain.table = "deep";
  max.pooling = Pooling::kMax;
  max.combine = Combine::kSum;
  mean.pooling = Pooling::kMean;
  jobs.push_back(TestGraph(
      {TestLayer("max", "embedding", {}, max), TestLayer("mean", "embedding", {}, mean),
       TestLayer("all", "concat", {"max", "mean"}),
       TestLayer("cross", "cross", {"all"}, OfUnits(2)), TestLayer("bias", "bias", {"cross"}),
       TestLayer("logit", "dense", {"bias"}, OfUnits(1))}));
  // The recipe dien has no next_item here.
  LayerSpec history = TestLayer("history", "sequence", {}, plain);
  history.features = {"C0"};
  jobs.push_back(TestGraph({history, TestLayer("gru", "gru", {"history"}, OfUnits(4)),
                            TestLayer("next", "next_item", {"gru", "history"}),
                            TestLayer("last", "last_vector", {"next"}),
                            TestLayer("logit", "dense", {"last"}, OfUnits(1))}));
  return jobs;
}

// A model with zeros as weights. Its tables have the given keys.
class Built {
 public:
  explicit Built(const Job& job, bool inside = true, std::vector<Key> keys = {3, 5, ~Key{0}})
      : graph_("test"), rows_(job.tables.size()) {
    const Result<Graph> planned = PlanGraph(job);
    CHECK(planned.ok());
    std::vector<std::vector<OnnxTensor>> tensors(job.model.layers.size());
    for (const DenseTensor& tensor : planned->tensors) {
      zeros_.emplace_back(tensor.size());
      tensors[tensor.layer].push_back(
          {tensor.name, {tensor.shape.begin(), tensor.shape.end()}, zeros_.back()});
    }
    for (size_t t = 0; t < rows_.size(); ++t) {
      if (job.tables[t].dense) continue;
      rows_[t] = {keys, std::vector<float>((1 + keys.size()) * job.tables[t].dim, 1.0f)};
    }
    status_ = BuildOnnxModel(job, tensors, inside ? &rows_ : nullptr, graph_);
  }

  OnnxGraph& graph() { return graph_; }
  const Status& status() const { return status_; }
  // Returns the bytes of a file of the model.
  std::string Bytes(const std::string& name, uint64_t bytes_max = kNoLimit) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    CHECK(files->MakeDirectories("/m").ok());
    CHECK(graph_.Write(*files, "/m", bytes_max).ok());
    const std::string path = JoinPath("/m", name);
    return files->Exists(path) ? *ReadWholeFile(*files, path, kNoLimit) : "";
  }

 private:
  OnnxGraph graph_;
  std::vector<OnnxRows> rows_;
  std::deque<std::vector<float>> zeros_;
  Status status_;
};

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(OnnxModelTest, EveryLayerHasAMappingThatTheCheckerAccepts) {
  std::set<std::string> kinds;
  for (const Job& job : Jobs()) {
    for (const LayerSpec& layer : job.model.layers) kinds.insert(layer.kind);
    for (const bool inside : {true, false}) {
      Built built(job, inside);
      ASSERT_TRUE(built.status().ok()) << built.status().message();
      const Status checked = built.graph().Check();
      EXPECT_TRUE(checked.ok()) << job.model.type << ": " << checked.message();
    }
  }
  for (const std::string& kind : BuiltInLayers().kinds()) {
    EXPECT_TRUE(kinds.contains(kind)) << kind << " is in none of the jobs above";
  }
}

TEST(OnnxModelTest, AWrongGraphIsNoticed) {
  OnnxGraph graph("wrong");
  const OnnxValue x = graph.Input("x", OnnxType::kFloat, {"n", 3});
  graph.Output("y", graph.Add("MatMul", {x, graph.Floats("w", {3, 2}, std::vector<float>(6))}),
               {"n", 5});
  EXPECT_THAT(graph.Check().message(), HasSubstr("a fault of hdps"));
}

TEST(OnnxModelTest, TablesWithTheSameKeysShareAnEncoder) {
  const Job job = TestJob("wide_deep");  // Two tables, each of all features.
  Built built(job);
  EXPECT_EQ(CountOf(built.Bytes(kOnnxModelName), "LabelEncoder_"), 2u * 2u)
      << "one node, with its name and its output, which one node for each table reads";
}

TEST(OnnxModelTest, ATableWithoutRowsHasNoEncoder) {
  Built built(TestJob("wide_deep"), true, {});
  EXPECT_TRUE(built.graph().Check().ok());
  EXPECT_EQ(CountOf(built.Bytes(kOnnxModelName), "LabelEncoder"), 0u);
}

TEST(OnnxModelTest, LargeConstantsGoIntoAFileOfTheirOwn) {
  std::vector<Key> keys(4096);
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = k;
  Built whole(TestJob("fm"), true, keys), cut(TestJob("fm"), true, keys);
  EXPECT_EQ(whole.Bytes("model.onnx.data"), "");
  const std::string data = cut.Bytes("model.onnx.data", 100000);
  EXPECT_GE(data.size(), 4097 * (6 + 1) * sizeof(float)) << "two tables of 6 and 1 columns";
  EXPECT_EQ(data.size() % sizeof(float), 0u);
  EXPECT_LT(cut.Bytes(kOnnxModelName).size() + data.size() / 2, whole.Bytes(kOnnxModelName).size());
}

TEST(OnnxModelTest, AProgramsOwnLayerIsRefusedByName) {
  LayerRecord record;
  record.kind = "powers";
  record.gives = "its input";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    return question.LikeInput();
  };
  record.make = [](const LayerSite&) -> std::unique_ptr<Layer> { return nullptr; };
  JobRegistry registry = BuiltInRegistry();
  ASSERT_TRUE(registry.layers.Add(record).ok());
  LayerOptions deep;
  deep.table = "deep";
  Job job = TestGraph({TestLayer("e", "embedding", {}, deep), TestLayer("own", "powers", {"e"}),
                       TestLayer("logit", "dense", {"own"}, OfUnits(1))});
  job.model.registry = std::make_shared<const JobRegistry>(registry);
  const Built built(job);
  EXPECT_EQ(built.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(built.status().message(), HasSubstr("layer \"own\" is of kind \"powers\""));
}

TEST(OnnxModelTest, AFeatureWithTheNameOfAnOutputIsRefused) {
  Job job = TestJob("fm");
  job.data.columns.back().name = "logit";
  EXPECT_THAT(Built(job).status().message(), HasSubstr("\"logit\" would be the name of two"));
}

}  // namespace
}  // namespace hdps
