// Tests cut models: the ranks of any strategy together compute what the whole model does.
#include "worker/parallel/rank_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/job/job_registry.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/planning/layer_facts.h"
#include "common/planning/strategy_of_job.h"
#include "common/platform/random.h"
#include "tests/worker/model/model_fixture.h"
#include "worker/collective/rank_transport.h"
#include "worker/model/step_parts.h"
#include "worker/parallel/rank_groups.h"
#include "worker/step/lane_exchange.h"

namespace hdps {
namespace {

// Results of a step: the loss, the gradients of all dense tensors, and those of each row.
struct Found {
  double loss_sum = 0;
  std::vector<float> dense;
  std::map<std::pair<size_t, Key>, std::vector<float>> rows;  // By table and key.
};

void AddRows(const Job& job, std::span<const TableInput> inputs,
             const std::vector<std::vector<float>>& gradients, Found* found) {
  for (size_t t = 0; t < inputs.size(); ++t) {
    if (inputs[t].keys == nullptr) continue;
    const uint32_t dim = job.tables[t].dim;
    for (size_t k = 0; k < inputs[t].keys->unique.size(); ++k) {
      std::vector<float>& row = found->rows[{t, inputs[t].keys->unique[k]}];
      row.resize(dim);
      for (uint32_t d = 0; d < dim; ++d) row[d] += gradients[t][k * dim + d];
    }
  }
}

// The rows of a table, as a function of table and key.
struct StepInputs {
  StepInputs(const Job& job, const StepParts& parts) : rows(job.tables.size()) {
    inputs.resize(job.tables.size());
    for (uint32_t t = 0; t < inputs.size(); ++t) {
      const KeySet* const set = parts.empty() ? nullptr : parts.SetOf(0, {t});
      if (set == nullptr) continue;
      for (const Key key : set->unique) {
        for (uint32_t d = 0; d < job.tables[t].dim; ++d) {
          rows[t].push_back(UnitFloat(RandomAt(key + t, d)) - 0.5f);
        }
      }
      inputs[t].keys = set;
      inputs[t].rows = rows[t];
    }
  }
  std::vector<std::vector<float>> rows;
  std::vector<TableInput> inputs;
};

std::vector<float> DenseOf(const Model& model, uint64_t seed) {
  std::vector<float> dense = model.InitialDense(seed);
  // Moves biases away from zero, where a wrong gradient may be hidden.
  for (const DenseTensor& tensor : model.tensors()) {
    float* const values = dense.data() + tensor.first_chunk * kDenseChunkFloats;
    for (size_t i = 0; i < tensor.size(); ++i) values[i] += 0.1f * UnitFloat(RandomAt(99, i));
  }
  return dense;
}

Found Whole(const Job& job, const Batch& batch, Executor& executor) {
  const std::unique_ptr<Model> model = *NewModel(job, executor);
  model->SetDense(DenseOf(*model, job.seed));
  KeyFinder finder(job);
  StepParts parts;
  parts.Assign(batch, 1, finder);
  const StepInputs inputs(job, parts);
  StepResult result;
  Found found;
  found.dense.resize(model->dense_floats());
  model->Step(batch, inputs.inputs, &result, found.dense);
  found.loss_sum = result.loss_sum;
  AddRows(job, inputs.inputs, result.row_gradients, &found);
  return found;
}

// Returns the joint results of ranks as threads. `why`: the error that stopped one of them.
Found Together(const Job& job, const Strategy& strategy, const Batch& batch, Executor& executor,
               std::string* why) {
  const uint32_t workers = strategy.workers;
  const std::unique_ptr<Model> whole = *NewModel(job, executor);
  const std::vector<float> dense = DenseOf(*whole, job.seed);
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(workers);
  std::vector<Found> of_rank(workers);
  std::vector<std::string> failed(workers);
  OnAllRanks(workers, [&](uint32_t rank) {
    const auto run = [&]() -> Status {
      HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<RankModel> cut,
                            RankModel::New(job, strategy, rank, executor));
      HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<RankGroups> sharing,
                            RankGroups::Form(cut->graph(), *groups[rank]));
      Model& model = cut->model();
      model.SetDense(cut->CutRows(kDenseChunkFloats, dense));
      KeyFinder finder(cut->job());
      StepParts parts;
      const std::vector<uint32_t>& kept = cut->job().data.kept_numbers;
      if (cut->graph().reads_whole_batch) {
        parts.Assign(kept.empty() ? batch : KeepNumbers(batch, kept),
                     {.workers = workers, .worker = rank}, finder);
      } else {
        parts.Assign(CutBatch(batch, rank, workers), 1, finder);
      }
      const StepInputs inputs(job, parts);
      const auto examples = static_cast<uint32_t>(parts.num_examples());
      HDPS_RETURN_IF_ERROR(cut->BeginStep(*groups[rank], {&examples, 1}));
      const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
      Collective* const group_of_lane = groups[rank].get();
      LaneExchange exchange({&group_of_lane, 1}, *clock);
      const uint32_t group = 0;
      exchange.BeginStep({&group, 1});
      StepResult result;
      std::vector<float> gradients(model.dense_floats());
      const Batch none;
      const bool empty = parts.empty();
      StepLane lane{empty ? &none : &parts.parts()[0].batch, inputs.inputs, &result, gradients};
      lane.rows = {empty ? &none : &parts.parts()[0].sources(), cut->RowsOfLayers(0)};
      HDPS_RETURN_IF_ERROR(exchange.EndStep(model.Step({&lane, 1}, &exchange, nullptr, nullptr)));
      for (size_t t = 0; t < model.tensors().size(); ++t) {
        const DenseTensor& tensor = model.tensors()[t];
        const size_t begin = tensor.first_chunk * kDenseChunkFloats;
        if (sharing->Of(t) == nullptr) continue;
        HDPS_RETURN_IF_ERROR(
            sharing->Of(t)->AllReduceSum(std::span(gradients).subspan(begin, tensor.size())));
      }
      HDPS_ASSIGN_OR_RETURN(of_rank[rank].dense,
                            cut->GatherRows(*groups[rank], kDenseChunkFloats, gradients));
      of_rank[rank].loss_sum = result.loss_sum;
      AddRows(job, inputs.inputs, result.row_gradients, &of_rank[rank]);
      return Status();
    };
    failed[rank] = run().message();
  });
  Found found;
  found.dense = of_rank[0].dense;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    if (!failed[rank].empty()) *why = "rank " + std::to_string(rank) + ": " + failed[rank];
    found.loss_sum += of_rank[rank].loss_sum;
    for (const auto& [key, row] : of_rank[rank].rows) {
      std::vector<float>& sum = found.rows[key];
      sum.resize(row.size());
      for (size_t d = 0; d < row.size(); ++d) sum[d] += row[d];
    }
  }
  return found;
}

// The largest difference, relative to the largest number.
class Apart {
 public:
  void Look(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) apart_ = 1e30;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      largest_ = std::max(largest_, std::abs(static_cast<double>(b[i])));
      apart_ = std::max(apart_, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
  }
  double value() const { return largest_ == 0 ? apart_ : apart_ / largest_; }

 private:
  double largest_ = 0, apart_ = 0;
};

double ApartOf(const Found& a, const Found& b) {
  Apart dense;
  dense.Look(a.dense, b.dense);
  std::map<size_t, Apart> tables;
  EXPECT_EQ(a.rows.size(), b.rows.size());
  for (const auto& [key, row] : b.rows) {
    const auto other = a.rows.find(key);
    EXPECT_TRUE(other != a.rows.end());
    if (other != a.rows.end()) tables[key.first].Look(other->second, row);
  }
  double apart = std::abs(a.loss_sum - b.loss_sum) / std::max(1.0, std::abs(b.loss_sum));
  apart = std::max(apart, dense.value());
  for (const auto& [table, of_table] : tables) apart = std::max(apart, of_table.value());
  return apart;
}

// Returns a strategy that cuts each layer at random in a possible way.
Strategy AnyStrategy(const Job& job, uint32_t workers, uint64_t seed) {
  const JobFacts facts = FactsOf(job);
  Strategy strategy = Strategy::DataParallel(workers, facts.layers.size());
  const bool by_features = seed % 2 == 1;
  for (size_t i = 0; i < facts.layers.size(); ++i) {
    std::vector<LayerSplit> splits = SplitsOf(facts.layers[i], workers, false);
    if (facts.layers[i].features > 0 && facts.layers[i].cut != LayerCut::kOwnRows) {
      // All by features, or all by the rows of their workers.
      std::erase_if(splits, [&](const LayerSplit& split) {
        return (split.columns > 1) != (by_features && workers <= 4);
      });
    }
    if (!splits.empty()) strategy.layers[i] = splits[RandomAt(seed, i) % splits.size()];
    const bool numbers = by_features && workers > 1 && workers <= 4 && seed % 4 == 1;
    if (facts.layers[i].cut == LayerCut::kNumbers && numbers) {
      strategy.layers[i] = {.columns = workers};
    }
  }
  return strategy;
}

Job DeepGraph() {
  LayerOptions deep, wide, relu, tanh, plain;
  deep.table = "deep";
  wide.table = "wide";
  wide.combine = Combine::kConcat;
  relu.units = 9;
  relu.activation = Activation::kRelu;
  tanh.units = 7;
  tanh.activation = Activation::kTanh;
  plain.units = 1;
  return TestGraph({TestLayer("e", "embedding", {}, deep), TestLayer("n", "numeric", {}),
                    TestLayer("all", "concat", {"e", "n"}), TestLayer("h1", "dense", {"all"}, relu),
                    TestLayer("h2", "dense", {"h1"}, tanh), TestLayer("h3", "dense", {"h1"}, tanh),
                    TestLayer("sum", "sum", {"h2", "h3"}), TestLayer("norm", "layer_norm", {"sum"}),
                    TestLayer("h4", "dense", {"norm"}, relu),
                    TestLayer("z", "dense", {"h4"}, plain), TestLayer("w", "embedding", {}, wide),
                    TestLayer("y", "dense", {"w"}, plain), TestLayer("logit", "sum", {"z", "y"})});
}

class RankModelTest : public testing::Test {
 protected:
  // Returns the largest difference over random strategies.
  double Worst(const Job& job, uint32_t workers, int strategies) {
    const Batch batch = TestBatch(job, {.num_examples = 23});
    const Found whole = Whole(job, batch, *executor_);
    double worst = 0;
    for (int s = 0; s < strategies; ++s) {
      const Strategy strategy = AnyStrategy(job, workers, static_cast<uint64_t>(s));
      std::string why, shown;
      const Found found = Together(job, strategy, batch, *executor_, &why);
      EXPECT_EQ(why, "");
      if (!why.empty()) return 1;
      const double apart = ApartOf(found, whole);
      for (const LayerSplit& split : strategy.layers) shown += ShowSplit(split, workers) + "; ";
      EXPECT_LT(apart, 5e-6) << "strategy " << s << " of " << workers << " workers: " << shown;
      worst = std::max(worst, apart);
    }
    return worst;
  }

  const std::unique_ptr<Executor> executor_ = NewTbbExecutor(2);
};

TEST_F(RankModelTest, AnyStrategyComputesTheSame) {
  for (const uint32_t workers : {1u, 2u, 3u, 4u, 6u}) {
    printf("%u workers: %.1e apart at most\n", workers, Worst(DeepGraph(), workers, 24));
  }
}

TEST_F(RankModelTest, RecipesCanBeCut) {
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "mmoe", "mlp", "autoint"}) {
    printf("%s: %.1e apart at most\n", type, Worst(TestJob(type), 4, 6));
  }
}

// A rank without rows has its columns of the others' rows.
TEST_F(RankModelTest, RanksWithoutRowsTakePart) {
  const Job job = DeepGraph();
  const Batch batch = TestBatch(job, {.num_examples = 2});
  const Found whole = Whole(job, batch, *executor_);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Strategy strategy = AnyStrategy(job, 4, seed);
    std::string why;
    EXPECT_LT(ApartOf(Together(job, strategy, batch, *executor_, &why), whole), 5e-6) << seed;
    EXPECT_EQ(why, "");
  }
}

// Parts of an image along any axis, read by dense layers that are cut in any way.
TEST_F(RankModelTest, ImagesAreCutAlongAnyAxis) {
  Job job = TestJob("mlp");
  job.data.format = DataFormat::kIdx;
  job.data.columns.clear();
  job.data.image_shape = {2, 4, 5};
  const Batch batch = TestBatch(job, {.num_examples = 9});
  const Found whole = Whole(job, batch, *executor_);
  const std::vector<std::vector<uint32_t>> tuples = {{1, 2},       {1, 1, 4, 1}, {1, 1, 1, 4},
                                                     {1, 2, 1, 1}, {1, 1, 3, 1}, {1, 1, 1, 5}};
  for (const std::vector<uint32_t>& tuple : tuples) {
    job.parallel.dataset_slices = {tuple};
    const uint32_t workers = *std::ranges::max_element(tuple);
    Strategy strategy = Strategy::DataParallel(workers, job.model.layers.size());
    ASSERT_EQ(job.model.layers[0].kind, "numeric");
    strategy.layers[0] = {.columns = workers};
    size_t kept = 0;
    for (uint32_t rank = 0; rank < workers; ++rank) {
      const Result<RankGraph> graph = CutForRank(job, strategy, rank);
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      const size_t own = graph->job.data.kept_numbers.size();
      EXPECT_LT(own, 40 / workers + 40 / 4) << "at most one index of the axis more than others";
      kept += own;
    }
    EXPECT_EQ(kept, 40u);
    for (const LayerSplit& dense :
         {LayerSplit{.inputs = workers}, OwnRowsSplit(workers), LayerSplit{.columns = workers}}) {
      strategy.layers[1] = dense;
      std::string why;
      EXPECT_LT(ApartOf(Together(job, strategy, batch, *executor_, &why), whole), 5e-6)
          << testing::PrintToString(tuple) << ShowSplit(dense, workers);
      EXPECT_EQ(why, "");
    }
  }
}

TEST_F(RankModelTest, ALayerHasAsManyColumnsAsParts) {
  const Job job = DeepGraph();
  Strategy strategy = Strategy::DataParallel(4, job.model.layers.size());
  strategy.layers[9] = {.columns = 4};  // This layer has one column.
  const Result<RankGraph> graph = CutForRank(job, strategy, 0);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(), testing::HasSubstr("\"z\" has 1 columns"));
}

}  // namespace
}  // namespace hdps
