// Tests sums over lanes and workers, and a model whose layers meet: its lanes against the whole
// batch.
#include "worker/step/lane_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/job/job_registry.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "tests/worker/model/model_fixture.h"
#include "worker/collective/rank_transport.h"
#include "worker/model/layer.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

const std::unique_ptr<MonotonicClock> kClock = NewSystemClock();
const std::vector<uint32_t> kFourAlone = {0, 1, 2, 3};

TEST(LaneExchangeTest, SumsLanesOfAGroupThenGroups) {
  // Values whose sum reveals its order.
  const std::array values = {1.0, 0x1p-53, 0x1p-53, -1.0};
  const auto sum_of = [&](const std::vector<uint32_t>& groups) {
    LaneExchange exchange({}, *kClock);
    exchange.BeginStep(groups);
    StepExchange::Ticket ticket = 0;
    for (size_t lane = 0; lane < 4; ++lane) {
      ticket = exchange.GiveToSum(lane, std::span(&values[lane], 1));
    }
    double sum = 0;
    EXPECT_TRUE(exchange.TakeSum(ticket, std::span(&sum, 1)).ok());
    EXPECT_TRUE(exchange.EndStep(Status()).ok());
    return sum;
  };
  EXPECT_EQ(sum_of(kFourAlone), ((values[0] + values[1]) + values[2]) + values[3]);
  EXPECT_EQ(sum_of({0, 0, 1, 1}), (values[0] + values[1]) + (values[2] + values[3]));
  EXPECT_NE(sum_of(kFourAlone), sum_of({0, 0, 1, 1}));
}

TEST(LaneExchangeTest, WorkersAddInTheOrderOfTheirRanksAndRunWorkInThatOfItsStart) {
  const std::vector<double> values = {1.0, 0x1p-53, 0x1p-53};
  std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(3);
  OnAllRanks(3, [&](uint32_t rank) {
    Collective* const group = groups[rank].get();
    LaneExchange exchange({&group, 1}, *kClock);
    EXPECT_EQ(exchange.workers(), 3u);
    for (int step = 0; step < 3; ++step) {
      exchange.BeginStep(std::vector<uint32_t>{0, 1});
      std::vector<int> order;
      const auto first = exchange.Start(0, [&](Collective* all) {
        order.push_back(1);
        return all->Barrier();
      });
      const auto second = exchange.Start(1, [&](Collective* all) {
        order.push_back(2);
        return all->Barrier();
      });
      exchange.GiveToSum(0, std::span(&values[rank], 1));
      const double nothing = -0.0;
      const auto ticket = exchange.GiveToSum(1, std::span(&nothing, 1));
      double sum = 0;
      ASSERT_TRUE(exchange.TakeSum(ticket, std::span(&sum, 1)).ok());
      EXPECT_EQ(sum, (values[0] + values[1]) + values[2]);
      ASSERT_TRUE(exchange.Wait(second).ok());
      ASSERT_TRUE(exchange.Wait(first).ok());
      EXPECT_EQ(order, (std::vector<int>{1, 2}));
      EXPECT_TRUE(exchange.EndStep(Status()).ok());
    }
  });
}

// A rank that leaves ends the wait of the others, and their later exchanges do not run.
TEST(LaneExchangeTest, AFailureEndsEveryWaitOfTheStep) {
  std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(2);
  OnAllRanks(2, [&](uint32_t rank) {
    if (rank == 1) return groups[0]->Abort();
    Collective* const group = groups[0].get();
    LaneExchange exchange({&group, 1}, *kClock);
    exchange.BeginStep(std::vector<uint32_t>{0});
    const double value = 1;
    const auto sum = exchange.GiveToSum(0, std::span(&value, 1));
    bool ran = false;
    const auto behind = exchange.Start(0, [&](Collective*) {
      ran = true;
      return Status();
    });
    double taken = 0;
    const Status status = exchange.TakeSum(sum, std::span(&taken, 1));
    EXPECT_TRUE(status.code() == Code::kCancelled || status.code() == Code::kUnavailable)
        << status.message();
    EXPECT_EQ(exchange.Wait(behind).code(), status.code());
    EXPECT_FALSE(ran);
    EXPECT_EQ(exchange.EndStep(status).code(), status.code());
  });
}

// Records events, and waits for them.
class Log {
 public:
  void Add(const std::string& what) {
    MutexLock lock(mutex_);
    lines_.push_back(what);
    changed_.notify_all();
  }
  // The test's own limit ends an endless wait.
  void Await(const std::string& what) {
    MutexLock lock(mutex_);
    while (std::ranges::find(lines_, what) == lines_.end()) changed_.wait(mutex_);
  }
  std::vector<std::string> lines() {
    MutexLock lock(mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::string> lines_ HDPS_GUARDED_BY(mutex_);
};

// y = x. The exchange of lane 0 ends when lane 1 has begun its own, which needs lane 1's layers
// below: who waited for it at once would wait in vain.
class LateLayer : public ExchangeLayer {
 public:
  LateLayer(uint32_t place, Log* log) : place_(place), log_(log) {}

  void BeginForward(Pass& pass) override { Begin(pass, "forward"); }
  Status EndForward(Pass& pass) override {
    HDPS_RETURN_IF_ERROR(End(pass, "forward"));
    const Place& self = pass.places[place_];
    pass.ops.Copy(Write::kOver, pass.places[self.inputs[0]].value, self.value);
    return {};
  }
  void BeginBackward(Pass& pass) override { Begin(pass, "backward"); }
  Status EndBackward(Pass& pass) override {
    HDPS_RETURN_IF_ERROR(End(pass, "backward"));
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    pass.ops.Copy(input.NextGradient(), self.gradient, input.gradient);
    return {};
  }

 private:
  void Begin(const Pass& pass, const std::string& way) {
    const std::string lane = std::to_string(pass.lane);
    log_->Add(way + " begins " + lane);
    ticket_ = pass.exchange->Start(pass.lane, [log = log_, way, first = pass.lane == 0](auto*) {
      if (first) log->Await(way + " begins 1");
      return Status();
    });
  }
  Status End(const Pass& pass, const std::string& way) {
    HDPS_RETURN_IF_ERROR(pass.exchange->Wait(ticket_));
    log_->Add(way + " ends " + std::to_string(pass.lane));
    return {};
  }

  const uint32_t place_;
  Log* const log_;
  StepExchange::Ticket ticket_ = 0;
};

TEST(LaneExchangeTest, WhatOneLaneWaitsForHasTheTimeOfTheOthersCompute) {
  Log log;
  LayerRecord late;
  late.kind = "late";
  late.gives = "its input";
  late.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    return question.LikeInput();
  };
  late.make = [&log](const LayerSite& site) {
    return std::make_unique<LateLayer>(site.place, &log);
  };
  auto registry = std::make_shared<JobRegistry>(BuiltInRegistry());
  ASSERT_TRUE(registry->layers.Add(late).ok());
  LayerOptions eight, one;
  eight.units = 8;
  one.units = 1;
  Job job = TestGraph({TestLayer("n", "numeric", {}), TestLayer("h", "dense", {"n"}, eight)});
  job.model.registry = registry;
  LayerSpec meets;
  meets.name = "meets";
  meets.kind = "late";
  meets.inputs = {"h"};
  job.model.layers.push_back(meets);
  job.model.layers.push_back(TestLayer("logit", "dense", {"meets"}, one));
  job.tables.erase(job.tables.begin(), job.tables.begin() + 2);
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Result<std::unique_ptr<Model>> model = NewModel(job, *executor);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_TRUE((*model)->has_exchange());
  (*model)->SetDense((*model)->InitialDense(1));

  std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(2);
  Collective* const group = groups[0].get();
  LaneExchange exchange({&group, 1}, *kClock);
  StepParts parts;
  KeyFinder finder(job);
  parts.Assign(TestBatch(job, {20, 1, false, 5}), PartCount{1, 2}, finder);
  const std::vector<TableInput> tables(job.tables.size());
  std::vector<StepResult> results(2);
  std::vector<std::vector<float>> dense(2, std::vector<float>((*model)->dense_floats()));
  std::vector<StepLane> lanes;
  for (size_t i = 0; i < 2; ++i) {
    lanes.push_back({&parts.parts()[i].batch, tables, &results[i], dense[i]});
  }
  exchange.BeginStep(std::vector<uint32_t>{0, 0});
  const Status status = exchange.EndStep((*model)->Step(lanes, &exchange, nullptr, nullptr));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(log.lines(),
            (std::vector<std::string>{"forward begins 0", "forward begins 1", "forward ends 0",
                                      "forward ends 1", "backward begins 0", "backward begins 1",
                                      "backward ends 0", "backward ends 1"}));
}

// A model whose hidden layer is normalized over the batch, and its parts.
class ExchangeModelTest : public testing::Test {
 protected:
  ExchangeModelTest() : executor_(NewInlineExecutor()) {
    job_ = BatchNormGraph(Activation::kRelu, 0.25);
    for (LayerSpec& layer : job_.model.layers) {
      if (layer.kind == "batch_norm") layer.words["over"] = "batch";
    }
    model_ = *NewModel(job_, *executor_);
    dense_ = model_->InitialDense(3);
  }

  struct Found {
    double loss_sum = 0;
    std::vector<float> dense;
    std::vector<std::vector<float>> rows;  // [tables]
  };

  // Runs the batch in `slices` lanes, followed by `empty` lanes without examples.
  Found Step(const Batch& batch, uint32_t slices, size_t empty = 0) {
    StepParts parts;
    KeyFinder finder(job_);
    parts.Assign(batch, PartCount{1, slices}, finder);
    const size_t lanes = parts.parts().size() + empty;
    std::vector<std::vector<TableInput>> inputs(lanes, std::vector<TableInput>(job_.tables.size()));
    std::vector<StepResult> results(lanes);
    std::vector<std::vector<float>> dense(lanes, std::vector<float>(dense_.size()));
    std::vector<std::vector<float>> given;
    given.reserve(lanes * job_.tables.size());
    const Batch none;
    std::vector<StepLane> given_lanes;
    for (size_t i = 0; i < lanes; ++i) {
      for (uint32_t t = 0; i < parts.parts().size() && t < job_.tables.size(); ++t) {
        const KeySet* const keys = parts.SetOf(i, {t});
        if (keys == nullptr) continue;
        std::vector<float>& rows = given.emplace_back();
        for (const Key key : keys->unique) {
          Random random(key * 7 + t);
          for (uint32_t d = 0; d < job_.tables[t].dim; ++d) {
            rows.push_back(static_cast<float>(random.Unit()) - 0.5f);
          }
        }
        inputs[i][t].keys = keys;
        inputs[i][t].rows = rows;
      }
      const Batch& part = i < parts.parts().size() ? parts.parts()[i].batch : none;
      given_lanes.push_back({&part, inputs[i], &results[i], dense[i]});
    }
    model_->SetDense(dense_);
    LaneExchange exchange({}, *kClock);
    const std::vector<uint32_t> groups(lanes, 0);
    exchange.BeginStep(groups);
    std::vector<uint32_t> told;
    EXPECT_TRUE(model_
                    ->Step(given_lanes, &exchange, nullptr,
                           [&](uint32_t tensor) { told.push_back(tensor); })
                    .ok());
    EXPECT_TRUE(exchange.EndStep(Status()).ok());
    EXPECT_EQ(told.size(), model_->tensors().size());
    EXPECT_TRUE(std::ranges::is_sorted(told, std::greater<>()));
    StepParts::GroupSum group;
    Found found;
    found.dense.assign(dense_.size(), -0.0f);
    found.rows.resize(job_.tables.size());
    for (size_t i = 0; i < lanes; ++i) {
      found.loss_sum += results[i].loss_sum;
      AddGradients(dense[i], found.dense);
      for (uint32_t t = 0; i < parts.parts().size() && t < job_.tables.size(); ++t) {
        if (inputs[i][t].keys == nullptr) continue;
        found.rows[t].resize(parts.KeysOf({t}).size() * job_.tables[t].dim);
        parts.AddRowGradients(i, {t}, job_.tables[t].dim, results[i].row_gradients[t], &group,
                              found.rows[t]);
      }
    }
    return found;
  }

  Batch Whole(uint32_t examples) const { return TestBatch(job_, {examples, 2, true, 5}); }

  static double Largest(std::span<const float> values) {
    double largest = 0;
    for (const float value : values) largest = std::max(largest, std::fabs(double{value}));
    return largest;
  }
  static double Apart(std::span<const float> a, std::span<const float> b) {
    EXPECT_EQ(a.size(), b.size());
    double apart = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      apart = std::max(apart, std::fabs(double{a[i]} - double{b[i]}));
    }
    return apart;
  }

  Job job_;
  const std::unique_ptr<Executor> executor_;
  std::unique_ptr<Model> model_;
  std::vector<float> dense_;
};

TEST_F(ExchangeModelTest, LanesAreTheWholeBatch) {
  ASSERT_TRUE(model_->has_exchange());
  const Batch batch = Whole(97);
  const Found whole = Step(batch, 1);
  for (const uint32_t slices : {2, 3, 5}) {
    SCOPED_TRACE(slices);
    const Found lanes = Step(batch, slices);
    EXPECT_NEAR(lanes.loss_sum, whole.loss_sum, 1e-6 * whole.loss_sum);
    EXPECT_LE(Apart(lanes.dense, whole.dense), 2e-6 * Largest(whole.dense));
    // A lane without examples changes no bit.
    const Found more = Step(batch, slices, 2);
    EXPECT_EQ(more.loss_sum, lanes.loss_sum);
    EXPECT_EQ(more.dense, lanes.dense);
    EXPECT_EQ(more.rows, lanes.rows);
  }
  // Statistics of the parts alone give another result.
  for (LayerSpec& layer : job_.model.layers) layer.words.clear();
  model_ = *NewModel(job_, *executor_);
  EXPECT_FALSE(model_->has_exchange());
}

// The loss over all lanes, changed along a direction: a change of one lane's statistics changes the
// others' losses.
TEST_F(ExchangeModelTest, GradientsOfLanesAreDifferences) {
  const Batch batch = Whole(24);
  const Found at = Step(batch, 3);
  const double step = 1e-2;
  int compared = 0;
  for (const DenseTensor& tensor : model_->tensors()) {
    const bool average = tensor.name.find("running") != std::string::npos;
    if (average) continue;  // Their values are not gradients.
    const size_t first = tensor.first_chunk * kDenseChunkFloats;
    double slope = 0, norm = 0;
    for (size_t i = 0; i < tensor.size(); ++i) norm += std::pow(at.dense[first + i], 2);
    norm = std::sqrt(norm);
    if (norm < 1e-3) continue;  // Like a bias in front of the normalization.
    ++compared;
    std::vector<float> direction(tensor.size());
    for (size_t i = 0; i < tensor.size(); ++i) {
      direction[i] = static_cast<float>(at.dense[first + i] / norm);
      slope += double{at.dense[first + i]} * double{direction[i]};
    }
    const std::vector<float> before = dense_;
    const auto loss_at = [&](double along) {
      for (size_t i = 0; i < tensor.size(); ++i) {
        dense_[first + i] = before[first + i] + static_cast<float>(along * double{direction[i]});
      }
      const double loss = Step(batch, 3).loss_sum;
      dense_ = before;
      return loss;
    };
    const double difference = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(difference, slope, 2e-2 * slope + 1e-3) << tensor.name;
  }
  EXPECT_GE(compared, 4) << "weights on both sides, gain and bias";
}

}  // namespace
}  // namespace hdps
