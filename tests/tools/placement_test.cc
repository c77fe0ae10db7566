// Tests how a placement is printed.
#include <gmock/gmock.h>

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tests/common/planning/planning_samples.h"
#include "tools/plan/placement_text.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(DenseExchange exchange, const TableOption& option) {
  const std::string word(WordOf(exchange));
  PlacedJob placed = {PlacedJobOf(kWideDeep, {"parallel.dense_exchange=" + word}), {}};
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
