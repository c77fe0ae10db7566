// Tests models against 50 steps of PyTorch from the same weights and batches, recorded in
// tests/references.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/metrics/probability.h"
#include "common/platform/monotonic_clock.h"
#include "worker/model/model.h"
#include "worker/model/step_parts.h"
#include "worker/step/lane_exchange.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 1e-5;
constexpr int kSteps = 50;

// As in formula.py: the hash of Fowler, Noll and Vo, and number i of the stream of a name.
uint64_t Fnv1a(const std::string& text) {
  uint64_t state = 0xcbf29ce484222325u;
  for (const char c : text) state = (state ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return state;
}
double Unit(const std::string& stream, uint64_t i) {
  uint64_t bits = Fnv1a(stream) + (i + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((bits ^ (bits >> 31)) >> 40) * 0x1.0p-24;
}
float Value(const std::string& stream, uint64_t i, double scale) {
  return static_cast<float>((2 * Unit(stream, i) - 1) * scale);
}

// Lists every recorded file by name.
std::vector<std::string> References() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HDPS_REFERENCES)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

// Trains the recorded model from the weights and batches of formula.py, by plain SGD.
class ReferenceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string path = std::string(HDPS_REFERENCES) + "/" + GetParam() + ".json";
    std::ifstream file(path);
    found_ = Json::parse(file);
    Change(&found_["job"]["model"]);
    Result<Job> job = ParseJob(found_["job"].dump(), path, {});
    ASSERT_TRUE(job.ok()) << job.status().message();
    job_ = *job;
    executor_ = NewInlineExecutor();
    Result<std::unique_ptr<Model>> model = NewModel(job_, *executor_);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    weight_scale_ = found_["weight_scale"];
    examples_ = found_["examples"];
    values_ = found_["values_per_feature"];
    MakeParameters();
  }

  // Changes the recorded model for a test.
  virtual void Change(Json*) {}

  void MakeParameters() {
    dense_.assign(model_->dense_floats(), 0.0f);
    for (const DenseTensor& tensor : model_->tensors()) {
      ASSERT_TRUE(found_["tensors"].contains(tensor.name)) << tensor.name << " is not recorded";
      for (size_t i = 0; i < tensor.size(); ++i) {
        dense_[tensor.first_chunk * kDenseChunkFloats + i] =
            Value("tensor " + tensor.name, i, weight_scale_);
      }
    }
    ASSERT_EQ(found_["tensors"].size(), model_->tensors().size());
    rows_.resize(job_.tables.size());
    for (size_t t = 0; t + 1 < job_.tables.size(); ++t) {
      rows_[t].resize(values_ * found_["bags"].size() * job_.tables[t].dim);
      for (size_t i = 0; i < rows_[t].size(); ++i) {
        rows_[t][i] = Value("table " + job_.tables[t].name, i, weight_scale_);
      }
    }
  }

  Batch BatchOf(int step) const {
    const std::string name = "batch " + std::to_string(step) + " ";
    Batch batch;
    batch.num_examples = examples_;
    batch.num_numeric = static_cast<uint32_t>(FeaturesOf(job_.data).numeric.size());
    const double classes = found_["classes"];
    batch.num_labels = static_cast<uint32_t>(LabelsOf(job_).size());
    for (uint64_t i = 0; i < examples_; ++i) {
      for (uint32_t t = 0; t < batch.num_labels; ++t) {
        const std::string stream = name + "label" + (t == 0 ? "" : std::to_string(t));
        batch.labels.push_back(static_cast<float>(std::floor(Unit(stream, i) * classes)));
      }
      if (HasColumn(job_.data, ColumnType::kWeight)) {
        batch.weights.push_back(static_cast<float>(2 * Unit(name + "weight", i)));
      }
      if (HasColumn(job_.data, ColumnType::kGroup)) {
        batch.groups.push_back(static_cast<Key>(Unit(name + "group", i) * 4));
      }
    }
    for (uint64_t i = 0; i < uint64_t{examples_} * batch.num_numeric; ++i) {
      batch.numeric.push_back(Value(name + "numeric", i, 1));
    }
    for (size_t f = 0; f < found_["bags"].size(); ++f) {
      const std::string number = std::to_string(f);
      const double longest = found_["bags"][f];
      SparseColumn column;
      column.offsets.push_back(0);
      for (uint64_t i = 0; i < examples_; ++i) {
        const auto length = 1 + static_cast<uint64_t>(Unit(name + "length " + number, i) * longest);
        for (uint64_t k = 0; k < length; ++k) {
          const double u = Unit(name + "key " + number, 1000 * i + k);
          column.keys.push_back(static_cast<uint64_t>(u * static_cast<double>(values_)) +
                                values_ * f);
        }
        column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
      }
      batch.sparse.push_back(std::move(column));
    }
    return batch;
  }

  // Returns the rows of the batch for the model.
  std::vector<TableInput> InputsOf(const Batch& batch) {
    KeyFinder finder(job_);
    finder.Find(batch, &sets_);
    std::vector<TableInput> inputs(job_.tables.size());
    given_.assign(inputs.size(), {});
    for (size_t t = 0; t < inputs.size(); ++t) {
      if (finder.table_keys()[t] < 0) continue;
      const KeySet& set = sets_[static_cast<size_t>(finder.table_keys()[t])];
      const uint32_t dim = job_.tables[t].dim;
      for (const Key key : set.unique) {
        const auto row = rows_[t].begin() + static_cast<ptrdiff_t>(key * dim);
        given_[t].insert(given_[t].end(), row, row + dim);
      }
      inputs[t].keys = &set;
      inputs[t].rows = given_[t];
    }
    return inputs;
  }

  // Runs one step and returns the mean loss.
  double Step(int step) {
    const Batch batch = BatchOf(step);
    const std::vector<TableInput> inputs = InputsOf(batch);
    model_->SetDense(dense_);
    StepResult result;
    std::vector<float> gradients(dense_.size());
    if (model_->has_exchange()) {
      StepInLanes(batch, &result, gradients);
    } else {
      model_->Step(batch, inputs, &result, gradients);
    }
    const float rate = found_["learning_rate"].get<float>() / static_cast<float>(examples_);
    for (size_t i = 0; i < dense_.size(); ++i) dense_[i] -= rate * gradients[i];
    for (size_t t = 0; t < inputs.size(); ++t) {
      if (inputs[t].keys == nullptr) continue;
      const uint32_t dim = job_.tables[t].dim;
      for (size_t k = 0; k < inputs[t].keys->unique.size(); ++k) {
        float* const row = rows_[t].data() + inputs[t].keys->unique[k] * dim;
        for (uint32_t d = 0; d < dim; ++d) row[d] -= rate * result.row_gradients[t][k * dim + d];
      }
    }
    return result.loss_sum / examples_;
  }

  // If layers meet: deals the examples in turn to three lanes, and joins their results.
  void StepInLanes(const Batch& batch, StepResult* result, std::span<float> gradients) {
    constexpr uint32_t kLanes = 3;
    StepParts parts;
    KeyFinder finder(job_);
    parts.Assign(batch, kLanes, finder);
    struct Memory {
      std::vector<TableInput> inputs;
      std::vector<std::vector<float>> rows;
      StepResult result;
      std::vector<float> dense;
    };
    std::vector<Memory> memory(kLanes);
    std::vector<StepLane> lanes;
    for (size_t i = 0; i < kLanes; ++i) {
      Memory& own = memory[i];
      own.inputs.resize(job_.tables.size());
      own.rows.resize(job_.tables.size());
      own.dense.resize(dense_.size());
      for (uint32_t t = 0; t < job_.tables.size(); ++t) {
        own.inputs[t].keys = parts.SetOf(i, {t});
        if (own.inputs[t].keys == nullptr) continue;
        for (const Key key : own.inputs[t].keys->unique) {
          const auto row = rows_[t].begin() + static_cast<ptrdiff_t>(key * job_.tables[t].dim);
          own.rows[t].insert(own.rows[t].end(), row, row + job_.tables[t].dim);
        }
        own.inputs[t].rows = own.rows[t];
      }
      lanes.push_back({&parts.parts()[i].batch, own.inputs, &own.result, own.dense});
    }
    const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
    LaneExchange exchange({}, *clock);
    exchange.BeginStep(std::vector<uint32_t>{0, 1, 2});
    ASSERT_TRUE(model_->Step(lanes, &exchange, nullptr, nullptr).ok());
    ASSERT_TRUE(exchange.EndStep(Status()).ok());
    result->loss_sum = 0;
    result->row_gradients.assign(job_.tables.size(), {});
    for (size_t i = 0; i < kLanes; ++i) {
      result->loss_sum += memory[i].result.loss_sum;
      AddGradients(memory[i].dense, gradients);
      for (uint32_t t = 0; t < job_.tables.size(); ++t)
        AddRows(parts, i, t, memory[i].result, result);
    }
  }

  // Adds the gradients of a part's rows to those of the batch's keys, as found by InputsOf().
  void AddRows(const StepParts& parts, size_t part, uint32_t t, const StepResult& from,
               StepResult* to) {
    const KeySet* const keys = parts.SetOf(part, {t});
    if (keys == nullptr) return;
    KeyFinder finder(job_);
    const std::vector<Key>& all = sets_[static_cast<size_t>(finder.table_keys()[t])].unique;
    const uint32_t dim = job_.tables[t].dim;
    to->row_gradients[t].resize(all.size() * dim);
    for (size_t k = 0; k < keys->unique.size(); ++k) {
      const auto at = static_cast<size_t>(std::ranges::find(all, keys->unique[k]) - all.begin());
      for (uint32_t d = 0; d < dim; ++d) {
        to->row_gradients[t][at * dim + d] += from.row_gradients[t][k * dim + d];
      }
    }
  }

  // Returns the largest difference of `ours` to the record.
  static double Farthest(std::span<const float> ours, const Json& theirs) {
    EXPECT_EQ(ours.size(), theirs.size());
    double farthest = 0;
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
      farthest = std::max(farthest, std::fabs(double{ours[i]} - theirs[i].get<double>()));
    }
    return farthest;
  }

  void FiftyStepsAgree() {
    double farthest = 0;
    for (int step = 0; step < kSteps; ++step) {
      const double loss = Step(step), theirs = found_["losses"][static_cast<size_t>(step)];
      ASSERT_NEAR(loss, theirs, kTolerance) << "step " << step;
      farthest = std::max(farthest, std::fabs(loss - theirs));
    }
    for (const DenseTensor& tensor : model_->tensors()) {
      const double apart =
          Farthest(std::span(dense_).subspan(tensor.first_chunk * kDenseChunkFloats, tensor.size()),
                   found_["tensors"][tensor.name]);
      EXPECT_LE(apart, kTolerance) << tensor.name;
      farthest = std::max(farthest, apart);
    }
    for (size_t t = 0; t + 1 < job_.tables.size(); ++t) {
      const double apart = Farthest(rows_[t], found_["rows"][job_.tables[t].name]);
      EXPECT_LE(apart, kTolerance) << job_.tables[t].name;
      farthest = std::max(farthest, apart);
    }
    std::printf("%s: at most %.1e from PyTorch in %d steps\n", GetParam().c_str(), farthest,
                kSteps);
  }

  Json found_;
  Job job_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Model> model_;
  double weight_scale_ = 0;
  uint32_t examples_ = 0;
  uint64_t values_ = 0;
  std::vector<float> dense_;
  std::vector<std::vector<float>> rows_;  // [tables][all keys * dim]
  std::vector<KeySet> sets_;
  std::vector<std::vector<float>> given_;
};

TEST_P(ReferenceTest, FiftyStepsAgree) { FiftyStepsAgree(); }

// Evaluation, in which layers may differ from training. The slope of the sigmoid is at most a
// quarter, which bounds the differences of its values.
TEST_P(ReferenceTest, PredictionsAgree) {
  for (int step = 0; step < kSteps; ++step) Step(step);
  const Batch batch = BatchOf(kSteps);
  const std::vector<TableInput> inputs = InputsOf(batch);
  model_->SetDense(dense_);
  std::vector<float> scores;
  model_->Predict(batch, inputs, &scores);
  ASSERT_EQ(scores.size(), found_["logits"].size());
  const std::vector<TaskSpec> tasks = TasksOf(job_.model);
  const size_t classes = scores.size() / examples_;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double logit = found_["logits"][i];
    const LossKind loss = tasks[i % tasks.size()].loss;
    const bool of_one = loss == LossKind::kLogloss;
    const double found = of_one ? ProbabilityOf(double{scores[i]}) : double{scores[i]};
    double wanted = of_one ? ProbabilityOf(logit) : logit;
    if (loss == LossKind::kSoftmax) {
      double sum = 0;
      const size_t first = i / classes * classes;
      for (size_t c = first; c < first + classes; ++c) {
        sum += std::exp(found_["logits"][c].get<double>());
      }
      wanted = std::exp(logit) / sum;
    }
    EXPECT_NEAR(found, wanted, kTolerance) << i;
  }
}

// PyTorch normalizes over the whole batch, as three lanes do that meet.
class ExchangeReferenceTest : public ReferenceTest {
 protected:
  void Change(Json* model) override {
    for (Json& layer : (*model)["layers"]) {
      if (layer["kind"] == "batch_norm") layer["over"] = "batch";
    }
  }
};

TEST_P(ExchangeReferenceTest, FiftyStepsAgree) {
  ASSERT_TRUE(model_->has_exchange());
  FiftyStepsAgree();
}

INSTANTIATE_TEST_SUITE_P(Recorded, ExchangeReferenceTest, testing::Values("batch_norm"));
INSTANTIATE_TEST_SUITE_P(Recorded, ReferenceTest, testing::ValuesIn(References()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace hdps
