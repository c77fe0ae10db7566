// Tests which rows a plan may keep at workers, and how a placement is printed.
#include <gmock/gmock.h>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tools/plan/kept_choices.h"
#include "tools/plan/placement_text.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRecipe[] = R"({"type": "wide_deep"})";
constexpr char kGraph[] = R"({"type": "graph", "tables": [{"name": "t"}, {"name": "u"}], "layers": [
    {"name": "a", "kind": "embedding", "table": "t", "features": ["c"]},
    {"name": "b", "kind": "embedding", "table": "u", "features": ["d"]},
    {"name": "both", "kind": "concat", "inputs": ["a", "b"]},
    {"name": "out", "inputs": ["both"], "units": 1}]})";

Job JobOf(const std::string& model, const std::vector<std::string>& overrides = {}) {
  const std::string json = R"({"data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label"}, {"name": "c"}, {"name": "d"}]},
      "train": {"batch_size": 4096}, "model": )" +
                           model + R"(, "parallel": {"parallel_mode": "auto_parallel"}})";
  Result<Job> job = ParseJob(json, "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job();
}

std::vector<KeptRowsChoices> ChoicesOf(const Job& job, const KeptRowsQuestion& question,
                                       bool fits = true) {
  return KeptRowsOf(job, *ShapeOf(job), question, [fits](const std::string&) { return fits; });
}

std::vector<uint64_t> RowsOf(const KeptRowsChoices& choices) {
  std::vector<uint64_t> rows;
  for (const KeptRowsOption& option : choices.options) rows.push_back(option.rows);
  return rows;
}

TEST(KeptChoicesTest, AreThoseThatTheJobFileCanSay) {
  const KeptRowsQuestion question = {.rows = 50'000, .workers = 4};
  const auto recipe = ChoicesOf(JobOf(kRecipe), question);
  ASSERT_EQ(recipe.size(), 1u);
  EXPECT_EQ(recipe[0].setting, "model.vocab_cache_size");
  EXPECT_THAT(RowsOf(recipe[0]), testing::ElementsAre(0, 100, 1000));
  const auto graph = ChoicesOf(JobOf(kGraph, {"model.tables.1.vocab_cache_size=7"}), question);
  ASSERT_EQ(graph.size(), 2u);
  EXPECT_EQ(graph[1].setting, "model.tables.1.vocab_cache_size");
  EXPECT_EQ(RowsOf(graph[0]).size(), 3u);
  EXPECT_THAT(RowsOf(graph[1]), testing::ElementsAre(7)) << "a said number stays";
  EXPECT_THAT(RowsOf(ChoicesOf(JobOf(kRecipe), question, false)[0]), testing::ElementsAre(0));
}

TEST(KeptChoicesTest, KeepingPaysWhereFewServersSendTheSameRowsToAll) {
  KeptRowsQuestion question = {.rows = 1e6, .zipf = 1.3, .workers = 8};
  const auto least = [&] {
    const auto choices = ChoicesOf(JobOf(kRecipe), question);
    double seconds = 0;
    for (const KeptRowsOption& option : choices[0].options) {
      seconds = std::min(seconds, option.seconds);
    }
    return seconds;
  };
  const StepRates rates;
  question.rates = OverNetwork(rates, 1e8, 50, 8, 8);
  const double many = least();
  question.rates = OverNetwork(rates, 1e8, 50, 1, 8);
  EXPECT_LT(least(), many);
  EXPECT_LT(least(), 0);
  question.rates.row_float_seconds = 0;
  EXPECT_EQ(least(), 0) << "nothing is saved";
  EXPECT_EQ(OverNetwork(rates, 0, 50, 1, 8), rates) << "all on one machine";
}

std::string TextOf(DenseExchange exchange, uint32_t kept) {
  const std::string word(WordOf(exchange));
  PlacedJob placed = {JobOf(kRecipe, {"parallel.dense_exchange=" + word}), {}};
  const JobShape shape = *ShapeOf(placed.job);
  const auto tables = ChoicesOf(placed.job, {.rows = 50'000, .workers = 4});
  placed.placement.strategy = Strategy::DataParallel(4, placed.job.model.layers.size());
  placed.placement.kept = {kept};
  return PlacementText({placed, tables, shape, 2, 50'000});
}

TEST(PlacementTextTest, HasALineForEachTableAndLayerAndTheSettingsThatTakeIt) {
  const std::string servers = TextOf(DenseExchange::kServers, 0);
  EXPECT_THAT(servers, HasSubstr("placement over 2 servers and 4 workers"));
  EXPECT_THAT(servers, HasSubstr("deep1"));
  EXPECT_THAT(servers, Not(HasSubstr("rows seen most")));
  EXPECT_THAT(servers, HasSubstr("parallel.device_num=4,parallel.dense_exchange=servers\n"));
  const std::string kept = TextOf(DenseExchange::kAllreduce, 2);
  EXPECT_THAT(kept, HasSubstr("servers; the 1000 rows seen most at workers"));
  EXPECT_THAT(kept, HasSubstr("workers, by allreduce"));
  EXPECT_THAT(kept, HasSubstr("dense_exchange=allreduce,model.vocab_cache_size=1000\n"));
}

}  // namespace
}  // namespace hdps
