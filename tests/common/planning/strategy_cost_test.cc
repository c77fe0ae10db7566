// Tests costs of layers, conversions and a whole strategy against figures computed by hand.
#include "common/planning/strategy_cost.h"

#include <gtest/gtest.h>

#include <string>

namespace hdps {
namespace {

// Round rates, so that each term of a sum is visible.
constexpr StepRates kRates = {.flops_per_second = 1e9,
                              .memory_bytes_per_second = 1e8,
                              .link_bytes_per_second = 1e6,
                              .exchange_seconds = 0.01,
                              .update_float_seconds = 1e-6,
                              .row_float_seconds = 1e-7};

constexpr size_t kRows = 0, kDense = 1;

// Returns a job of 1,000 examples: 8 features of 16 floats, and a dense layer of 64 units over them
// with Adam's two floats of state per weight.
JobFacts Facts() {
  LayerFacts rows;
  rows.cut = LayerCut::kFeatures;
  rows.width = 128;
  rows.learns = true;
  rows.table = "t";
  rows.features = 8;
  rows.dim = 16;
  LayerFacts dense;
  dense.cut = LayerCut::kMatrix;
  dense.inputs = {kRows};
  dense.width = 64;
  dense.input_width = 128;
  dense.learns = true;
  dense.tensor_floats = 128 * 64 + 64;
  dense.flops = 2.0 * 128 * 64;
  return {{rows, dense}, 1000, 2};
}

// Literals have six digits or more; sums of doubles differ by less.
void ExpectFigure(double found, double wanted, const std::string& what) {
  EXPECT_NEAR(found, wanted, 1e-9 * wanted) << what;
}

TEST(StrategyCostTest, ADenseLayerOfFourPartsOfTheExamples) {
  const JobFacts facts = Facts();
  const LayerCost cost = StrategyCost(facts, 4, kRates).OfLayer(kDense, {.examples = 4});
  // 250 rows: 3 passes of 16,384 operations; 64 + 128 values and their gradients of 4 bytes.
  ExpectFigure(cost.compute_seconds, 0.012288 + 0.00384, "compute");
  // A ring of 4: 6 of 4 parts of 8,256 floats leave a worker; one call.
  ExpectFigure(cost.reduce_seconds, 0.049536 + 0.01, "reduce");
  ExpectFigure(cost.update_seconds, 0.008256, "update");
  ExpectFigure(cost.weight_floats, 8256, "weights");
  // Weights, gradients and state; 250 x 64 values and their gradients.
  ExpectFigure(cost.memory_bytes, 4 * (8256 * 4 + 2 * 16000), "memory");
  ExpectFigure(cost.seconds(), 0.012288 + 0.00384 + 0.049536 + 0.01 + 0.008256, "all");
}

TEST(StrategyCostTest, LayersThatLearnShareTheCallsOfAnExchange) {
  JobFacts facts = Facts();
  facts.layers.push_back(facts.layers[kDense]);
  const LayerCost cost = StrategyCost(facts, 2, kRates).OfLayer(kDense, {.examples = 2});
  // A ring of 2: 2 of 2 parts; half of a call.
  ExpectFigure(cost.reduce_seconds, 0.033024 + 0.005, "reduce");
}

TEST(StrategyCostTest, PartsOfTheColumnsTakeTheirPartOfTheWeightsAndReduceNothing) {
  const JobFacts facts = Facts();
  const LayerCost cost = StrategyCost(facts, 4, kRates).OfLayer(kDense, {.columns = 4});
  // 1,000 rows of 16 columns over all 128 inputs.
  ExpectFigure(cost.compute_seconds, 3 * 4096e3 / 1e9 + 8 * (16000 + 128000) / 1e8, "compute");
  EXPECT_EQ(cost.reduce_seconds, 0);
  ExpectFigure(cost.update_seconds, 0.002064, "update");
  ExpectFigure(cost.memory_bytes, 4 * (2064 * 4 + 2 * 16000), "memory");
}

TEST(StrategyCostTest, PartsOfTheInputsExchangeTheirSummands) {
  const JobFacts facts = Facts();
  const LayerCost cost = StrategyCost(facts, 2, kRates).OfLayer(kDense, {.inputs = 2});
  // 1,000 rows of 64 columns over 64 inputs. Each worker sends half of its 64,000 summands, which
  // the other adds; its half of the gradient goes back.
  ExpectFigure(cost.compute_seconds,
               3 * 8192e3 / 1e9 + 8 * (64000 + 64000) / 1e8 + 2 * (0.01 + 0.128), "compute");
  ExpectFigure(cost.update_seconds, 64 * 64e-6 + 64e-6, "update");
}

TEST(StrategyCostTest, RowsComeFromTheServersAndGoBack) {
  const JobFacts facts = Facts();
  const StrategyCost cost(facts, 4, kRates);
  // 250 rows of 128 floats there and back, and as values; no products, no tensors.
  const LayerCost of_examples = cost.OfLayer(kRows, {.examples = 4});
  ExpectFigure(of_examples.seconds(), 2 * 32000e-7 + 8 * 32000 / 1e8, "examples");
  ExpectFigure(of_examples.memory_bytes, 4 * 2 * 32000, "memory");
  // All 1,000 rows of 2 features, 32 floats.
  ExpectFigure(cost.OfLayer(kRows, {.columns = 4}).seconds(), 2 * 32000e-7 + 8 * 32000 / 1e8,
               "columns");
}

TEST(StrategyCostTest, ConversionsSendWhatTheOthersLack) {
  const JobFacts facts = Facts();
  const StrategyCost cost(facts, 4, kRates);
  const LayerSplit examples = {.examples = 4}, columns = {.columns = 4};
  EXPECT_EQ(cost.OfConversion(kRows, examples, kDense, examples).seconds, 0);
  // Every worker's quarter of 128,000 floats goes to three others. Sums come back: each worker has
  // summands of all rows, and sends three quarters of them.
  const ConversionCost gathered = cost.OfConversion(kRows, examples, kDense, columns);
  EXPECT_STREQ(gathered.forward, "allgather");
  EXPECT_STREQ(gathered.backward, "reduce-scatter");
  ExpectFigure(gathered.forward_bytes, 0.75 * 4 * 128000, "forward");
  ExpectFigure(gathered.backward_bytes, 0.75 * 4 * 128000, "backward");
  ExpectFigure(gathered.seconds, 2 * (0.01 + 0.384), "both");
  // From columns to rows: three quarters of its 16 x 1,000 floats belong to other workers' rows.
  const ConversionCost turned = cost.OfConversion(kDense, columns, kLoss, {});
  EXPECT_STREQ(turned.forward, "all-to-all");
  ExpectFigure(turned.forward_bytes, 0.75 * 4 * 16000, "forward");
}

TEST(StrategyCostTest, AStrategyCostsWhatItsLayersAndConversionsDo) {
  const JobFacts facts = Facts();
  Strategy strategy;
  strategy.workers = 4;
  strategy.layers = {{.examples = 4}, {.columns = 4}};
  const StrategyCost cost(facts, 4, kRates);
  const double layers = cost.OfLayer(kRows, strategy.layers[0]).seconds() +
                        cost.OfLayer(kDense, strategy.layers[1]).seconds();
  const double between = 2 * (0.01 + 0.384) + 2 * (0.01 + 0.048);
  const StrategyTotal total = TotalOf(facts, strategy, kRates);
  ExpectFigure(total.seconds, layers + between, "seconds");
  ExpectFigure(total.memory_bytes, 4 * 2 * 32000 + 4 * (2064 * 4 + 2 * 16000), "memory");
}

}  // namespace
}  // namespace hdps
