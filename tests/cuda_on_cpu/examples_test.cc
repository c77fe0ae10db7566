// Tests jobs of real size on the device: the cost in AUC of products of rounded factors, and a net
// with layers on the device, on the host and on both.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "tests/worker/model/expect_e2.h"
#include "tests/worker/role/small_job.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_job.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

const Overrides kDevice = {"model.device=cuda"};
const Overrides kHost = {"model.device=cpu"};
const Overrides kAllReduce = {"parallel.dense_exchange=allreduce"};

class ExamplesOnDeviceTest : public SmallJobTest {
 protected:
  ExamplesOnDeviceTest() : SmallJobTest({}, "", "") {}

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(*files_, path, text).ok());
  }
  // Copies a file of the project.
  void Bring(const std::string& path, const std::string& name) {
    const auto disk = NewPosixFileSystem();
    const auto text = ReadWholeFile(*disk, JoinPath(HDPS_SOURCE_DIR, path), 16 << 20);
    ASSERT_TRUE(text.ok()) << text.status().message();
    Write(name, *text);
  }

  std::vector<float> DenseAfter(const Overrides& overrides) {
    EXPECT_EQ(Summary({1, 1}, overrides)["steps"], 50);
    const auto job = LoadJob(*files_, "job.json", overrides + kHost);
    const auto executor = NewInlineExecutor();
    auto model = CheckpointModel::Load(*files_, *job, JoinPath(out(), "checkpoint"),
                                       WhichCheckpoint::kNewest, *executor);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? (*model)->DenseWeights() : std::vector<float>();
  }

  // Trains the same job in fp32, tf32 and bf16.
  void ExpectPrecisionCostsNoAuc(const char* name, const Overrides& overrides) {
    const double whole = Summary({1, 1}, kDevice + overrides)["eval_auc"];
    EXPECT_GT(whole, 0.7) << "Nothing was learned that could be lost.";
    for (const char* precision : {"tf32", "bf16"}) {
      const Overrides rounded = {std::string("model.precision=") + precision};
      const double auc = Summary({1, 1}, kDevice + overrides + rounded)["eval_auc"];
      std::printf("%s: AUC %.5f in fp32, %.5f in %s\n", name, whole, auc, precision);
      EXPECT_NE(auc, whole) << "Nothing was rounded.";
      EXPECT_NEAR(auc, whole, 0.001) << name << " in " << precision;
    }
  }
};

TEST_F(ExamplesOnDeviceTest, PrecisionCostsCensusNoAuc) {
  Bring("examples/census/census.json", "job.json");
  Bring("examples/census/adult.data.gz", "adult.data.gz");
  Bring("examples/census/adult.test.gz", "adult.test.gz");
  ExpectPrecisionCostsNoAuc("census", {"train.epochs=1"});
}

TEST_F(ExamplesOnDeviceTest, PrecisionCostsAPlantedLogNoAuc) {
  SyntheticLogSpec spec;
  spec.rows = 30000;
  spec.eval_rows = 10000;
  spec.vocabulary = 500;
  ASSERT_TRUE(WriteSyntheticLog(*files_, ".", spec).ok());
  Write("job.json", JobOfLog(spec));
  ExpectPrecisionCostsNoAuc("planted log", {"train.epochs=1", "train.batch_size=256"});
}

// The net of MindSpore's data parallel tutorial, 784-512-512-10 by sgd with 32 pictures per step,
// also run like its host/device tutorial: with the products of all layers on the host.
class PlacedLayersTest : public ExamplesOnDeviceTest {
 protected:
  PlacedLayersTest() {
    SyntheticDigitsSpec spec;
    spec.rows = 50 * 32;
    spec.eval_rows = 200;
    spec.idx = true;
    EXPECT_TRUE(WriteSyntheticDigits(*files_, ".", spec).ok());
    nlohmann::json job = nlohmann::json::parse(JobOfDigits(spec));
    job["train"] = {{"batch_size", 32}, {"epochs", 1}};
    nlohmann::json optimizer = job["model"]["dense_optimizer"];
    job["model"] = {
        {"type", "graph"}, {"loss", "softmax"}, {"classes", 10}, {"dense_optimizer", optimizer}};
    job["model"]["layers"] = {
        {{"name", "pixels"}, {"kind", "numeric"}},
        {{"name", "first"}, {"inputs", {"pixels"}}, {"units", 512}, {"activation", "relu"}},
        {{"name", "second"}, {"inputs", {"first"}}, {"units", 512}, {"activation", "relu"}},
        {{"name", "logits"}, {"inputs", {"second"}}, {"units", 10}}};
    job_ = job;
  }

  // Puts the named layers on the host.
  void Place(const std::vector<std::string>& on_host, const char* activation) {
    nlohmann::json job = job_;
    for (auto& layer : job["model"]["layers"]) {
      if (layer.contains("activation")) layer["activation"] = activation;
      for (const std::string& name : on_host) {
        if (layer["name"] == name) layer["device"] = "cpu";
      }
    }
    Write("job.json", job.dump());
  }

  nlohmann::json job_;
};

float MostApart(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float apart = 0;
  for (size_t i = 0; i < a.size(); ++i) apart = std::max(apart, std::abs(a[i] - b[i]));
  return apart;
}

// A sum near zero may have either sign after rounding, and relu then passes its gradient or not; 50
// steps of 32 x 1,024 sums meet a few such. With tanh nothing depends on one bit.
TEST_F(PlacedLayersTest, DeviceHostAndBothLearnTheSame) {
  struct Way {
    const char* name;
    std::vector<std::string> on_host;
  };
  const Way ways[] = {{"all on the device", {}},
                      {"the second layer on the host", {"second"}},
                      {"all products on the host", {"first", "second", "logits"}}};
  for (const char* activation : {"tanh", "relu"}) {
    Place({}, activation);
    const std::vector<float> host = DenseAfter(kHost);
    ASSERT_GE(host.size(), 784u * 512 + 512 * 512 + 512 * 10);
    for (const Way& way : ways) {
      SCOPED_TRACE(std::string(way.name) + ", " + activation);
      Place(way.on_host, activation);
      const std::vector<float> dense = DenseAfter(kDevice);
      const bool same_products = way.on_host.size() == 3;
      if (same_products) {
        EXPECT_EQ(dense, host);
      } else if (activation == std::string("tanh")) {
        ExpectE2(dense, host);
      }
      std::printf("%s, %s: weights at most %.1e apart after 50 steps\n", way.name, activation,
                  double{MostApart(dense, host)});
    }
  }
}

TEST_F(PlacedLayersTest, TheLogSaysWhereEachLayerIs) {
  const std::vector<std::string> on_host = {"second", "logits"};
  Place(on_host, "relu");
  FLAGS_minloglevel = google::GLOG_INFO;
  testing::internal::CaptureStderr();
  Summary({1, 1}, kDevice + Overrides{"train.max_steps=1"});
  const std::string log = testing::internal::GetCapturedStderr();
  FLAGS_minloglevel = google::GLOG_ERROR;
  for (const char* layer : {"pixels", "first", "second", "logits"}) {
    const size_t at = log.find(std::string("layer ") + layer);
    ASSERT_NE(at, std::string::npos) << log;
    const std::string line = log.substr(at, log.find('\n', at) - at);
    const bool there = std::count(on_host.begin(), on_host.end(), layer) == 0;
    EXPECT_NE(line.find(there ? "device=cuda" : "device=cpu"), std::string::npos) << line;
  }
}

// Optimizers run on the device, or on the host from gradients that are copied down.
TEST_F(PlacedLayersTest, OptimizersOfTheDeviceAndTheHostLearnTheSame) {
  Place({}, "relu");
  for (const char* optimizer : {"sgd", "adam"}) {  // JobOnDeviceTest covers all others.
    SCOPED_TRACE(optimizer);
    const Overrides kind = {std::string("model.dense_optimizer.kind=") + optimizer,
                            "model.dense_optimizer.learning_rate=0.001"};
    const std::vector<float> device = DenseAfter(kDevice + kAllReduce + kind);
    EXPECT_EQ(DenseAfter(kDevice + kAllReduce + kind + Overrides{"model.dense_target=cpu"}),
              device);
  }
}

}  // namespace
}  // namespace hdps
