// Tests how a placement is printed.
#include <gmock/gmock.h>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tools/plan/placement_text.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRecipe[] = R"({"type": "wide_deep"})";
Job JobOf(const std::string& model, const std::vector<std::string>& overrides = {}) {
  const std::string json = R"({"data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label"}, {"name": "c"}, {"name": "d"}]},
      "train": {"batch_size": 4096}, "model": )" +
                           model + R"(, "parallel": {"parallel_mode": "auto_parallel"}})";
  Result<Job> job = ParseJob(json, "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job();
}

std::string TextOf(DenseExchange exchange, const TableOption& option) {
  const std::string word(WordOf(exchange));
  PlacedJob placed = {JobOf(kRecipe, {"parallel.dense_exchange=" + word}), {}};
  const JobShape shape = *ShapeOf(placed.job);
  placed.placement.strategy = Strategy::DataParallel(4, placed.job.model.layers.size());
  placed.placement.tables = {option};
  return PlacementText({placed, shape, 2, 50'000});
}

TEST(PlacementTextTest, HasALineForEachTableAndLayerAndTheSettingsThatTakeIt) {
  const std::string servers = TextOf(DenseExchange::kServers, {});
  EXPECT_THAT(servers, HasSubstr("placement over 2 servers and 4 workers"));
  EXPECT_THAT(servers, HasSubstr("deep1"));
  EXPECT_THAT(servers, Not(HasSubstr("rows seen most")));
  EXPECT_THAT(servers, HasSubstr("parallel.device_num=4,parallel.dense_exchange=servers\n"));
  const std::string kept = TextOf(DenseExchange::kAllreduce,
                                  {.kept = 1000, .settings = {"model.vocab_cache_size=1000"}});
  EXPECT_THAT(kept, HasSubstr("servers; the 1000 rows seen most at workers"));
  EXPECT_THAT(kept, HasSubstr("workers, by allreduce"));
  EXPECT_THAT(kept, HasSubstr("dense_exchange=allreduce,model.vocab_cache_size=1000\n"));
  const std::string cut =
      TextOf(DenseExchange::kServers,
             {.cut = "columns in 2 parts", .settings = {"model.slice_mode=table_column_slice"}});
  EXPECT_THAT(cut, HasSubstr("servers, columns in 2 parts"));
}

}  // namespace
}  // namespace hdps
