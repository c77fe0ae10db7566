// Tests that a placement is the cheapest of all that a job can have, and that an open exchange is
// settled alike by all members.
#include "common/planning/placement.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>

#include "common/base/hash.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/planning/strategy_of_job.h"
#include "tests/common/planning/planning_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr char kPath[] = "job.json";

// Returns a job of two tables, each under a dense layer, and of `widths` above both. Its exchange
// is open.
std::string TwoTables(const std::vector<int>& widths, int batch) {
  std::string layers = R"({"name": "r1", "kind": "embedding", "table": "t", "features": ["c"]},
      {"name": "r2", "kind": "embedding", "table": "u", "features": ["d", "e"]},
      {"name": "both", "kind": "concat", "inputs": ["r1", "r2"]})";
  std::string below = "both";
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string name = "h" + std::to_string(i);
    layers += R"(, {"name": ")" + name + R"(", "inputs": [")" + below + R"("], "units": )" +
              std::to_string(widths[i]) + "}";
    below = name;
  }
  return R"({"data": {"train": ["a.csv"], "columns": [{"name": "y", "type": "label"},
      {"name": "x", "type": "numeric"}, {"name": "c"}, {"name": "d"}, {"name": "e"}]},
      "train": {"batch_size": )" +
         std::to_string(batch) + R"(}, "model": {"type": "graph",
      "tables": [{"name": "t", "dim": 8}, {"name": "u", "dim": 16}], "layers": [)" +
         layers + R"(, {"name": "out", "inputs": [")" + below +
         R"("], "units": 1}]}, "parallel": {"parallel_mode": "auto_parallel"}})";
}

std::unique_ptr<FileSystem> FilesWith(const std::string& json) {
  std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  EXPECT_TRUE(WriteFileAtomically(*files, kPath, json).ok());
  return files;
}

// Kept rows and cuts that pay, do not, and take much memory, by a seed.
std::vector<TableChoices> RandomTables(uint64_t seed) {
  std::vector<TableChoices> tables;
  for (const std::string place : {"model.tables.0.", "model.tables.1."}) {
    std::vector<TableOption>& options = tables.emplace_back().options;
    options = {{}};
    const auto seconds = [&seed] {
      seed = MixBits(seed + 1);
      return (double(seed % 1000) - 500) * 2e-6;
    };
    for (const uint64_t rows : {100, 1000, 10000}) {
      const double added = seconds();
      options.push_back({rows,
                         added,
                         double(rows * (8 + seed % 64)),
                         "",
                         {place + "vocab_cache_size=" + std::to_string(rows)}});
    }
    const double by_columns = seconds() / 4;
    options.push_back({0, by_columns, 0, "columns", {place + "slice_mode=table_column_slice"}});
    const double by_ranges = seconds() / 4;
    options.push_back({0, by_ranges, 0, "ranges", {place + "slice_mode=table_row_slice"}});
  }
  return tables;
}

// Returns the least seconds of all placements within the limit: each exchange, each cut of each
// layer, each cut of each table, and each number of kept rows, which go with whole layers alone.
double BruteForce(const std::string& json, uint32_t workers, double bytes_max,
                  const PlacementQuestion& question) {
  const std::vector<TableChoices>& tables = question.tables;
  double best = kNone;
  for (const char* exchange : {"servers", "allreduce"}) {
    const Job job = GoodJob({std::string("parallel.dense_exchange=") + exchange}, json);
    const JobFacts facts = FactsOf(job);
    std::vector<std::vector<LayerSplit>> splits;
    for (const LayerFacts& layer : facts.layers) {
      const bool whole = layer.at_servers || !layer.table.empty();
      splits.push_back(whole ? std::vector{OwnRowsSplit(workers)}
                             : SplitsOf(layer, workers, /*all_workers=*/true));
    }
    std::vector<size_t> at(splits.size(), 0);
    for (size_t n = 0; n < at.size();) {
      Strategy strategy{workers, {}};
      for (size_t i = 0; i < splits.size(); ++i) strategy.layers.push_back(splits[i][at[i]]);
      const StrategyTotal total = TotalOf(facts, strategy, *question.rates);
      for (const TableOption& t : tables[0].options) {
        for (const TableOption& u : tables[1].options) {
          const bool can = strategy.data_parallel() || t.kept + u.kept == 0;
          if (!can || total.memory_bytes + t.bytes + u.bytes > bytes_max) continue;
          best = std::min(best, total.seconds + t.seconds + u.seconds);
        }
      }
      for (n = 0; n < at.size() && ++at[n] == splits[n].size();) at[n++] = 0;
    }
  }
  return best;
}

Result<PlacedJob> Place(const std::string& json, uint32_t workers, uint64_t limit,
                        const PlacementQuestion& question) {
  std::vector<std::string> overrides;
  if (limit > 0) overrides.push_back("parallel.worker_memory_limit=" + std::to_string(limit));
  return LoadPlacedJob(*FilesWith(json), {kPath, json}, &overrides, workers, DataFiles::kNotNeeded,
                       question);
}

TEST(PlacementTest, IsTheCheapestOfAllThatAJobCanHave) {
  int servers = 0, whole = 0, cut = 0, kept = 0, tables_cut = 0, limited = 0, none = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    std::vector<int> widths;
    for (uint64_t i = 0; i <= seed % 3; ++i) widths.push_back(1 << (3 + MixBits(seed + i) % 11));
    const std::string json = TwoTables(widths, 1 << (4 + seed % 9));
    PlacementQuestion question = {RandomTables(seed), StepRates()};
    if (seed % 2 == 0) question.rates->row_float_seconds *= 10;
    for (const uint32_t workers : {2u, 4u}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << workers << " workers");
      const Result<PlacedJob> free = Place(json, workers, 0, question);
      ASSERT_TRUE(free.ok()) << free.status().message();
      const Placement& placed = free->placement;
      const double least = BruteForce(json, workers, kNone, question);
      EXPECT_NEAR(placed.seconds, least, 1e-9 * std::abs(least));
      const bool at_servers = free->job.parallel.dense_exchange == DenseExchange::kServers;
      servers += at_servers;
      whole += !at_servers && placed.strategy.data_parallel();
      cut += !placed.strategy.data_parallel();
      kept += placed.tables[0].kept + placed.tables[1].kept > 0;
      tables_cut += !placed.tables[0].cut.empty() || !placed.tables[1].cut.empty();
      for (size_t t = 0; t < 2; ++t) {
        const TableSpec& table = free->job.tables[t];
        EXPECT_EQ(table.vocab_cache_size, placed.tables[t].kept) << "the job is as it was placed";
        EXPECT_EQ(table.slice_mode == SliceMode::kBatch, placed.tables[t].cut.empty());
      }
      for (const double share : {0.95, 0.6}) {
        const auto limit = static_cast<uint64_t>(share * placed.memory_bytes);
        const Result<PlacedJob> fits = Place(json, workers, limit, question);
        const double fitting = BruteForce(json, workers, double(limit), question);
        EXPECT_EQ(fits.ok(), fitting < kNone);
        if (!fits.ok()) {
          EXPECT_THAT(fits.status().message(),
                      AllOf(HasSubstr("worker_memory_limit"), HasSubstr("needs least takes")));
          ++none;
          continue;
        }
        EXPECT_LE(fits->placement.memory_bytes, double(limit));
        EXPECT_NEAR(fits->placement.seconds, fitting, 1e-9 * std::abs(fitting));
        ++limited;
      }
    }
  }
  std::printf(
      "of 48 placements %d at servers, %d whole at workers, %d cut, %d with kept rows, %d with cut "
      "tables; %d limited, %d none\n",
      servers, whole, cut, kept, tables_cut, limited, none);
  EXPECT_GT(std::min({servers, whole, cut, kept, tables_cut, limited, none}), 0);
}

// A placement that keeps rows is what a job trains that names them.
TEST(PlacementTest, AJobThatKeepsRowsHasWholeLayersUnderASearch) {
  const std::string json = TwoTables({16384, 16384}, 64);
  const std::vector<std::string> all = {"parallel.dense_exchange=allreduce"};
  EXPECT_FALSE(StrategyOf(GoodJob(all, json), 4)->data_parallel());
  const Job keeps =
      GoodJob({"parallel.dense_exchange=allreduce", "model.tables.1.vocab_cache_size=100"}, json);
  const Strategy strategy = *StrategyOf(keeps, 4);
  EXPECT_TRUE(strategy.data_parallel());
  EXPECT_THAT(StrategyLine(keeps, strategy),
              HasSubstr("whole layers because of model.vocab_cache_size: it keeps rows"));
}

// Returns constants with this rate of what workers send each other and of rows from servers.
std::string Constants(double link_byte_ns, double row_float_ns) {
  const auto result = [](const std::string& of, const std::string& figure, double value) {
    return R"({"bench": "constants", "case": ")" + of + R"(", "figure": ")" + figure +
           R"(", "value": )" + std::to_string(value) + "}";
  };
  return R"({"results": [)" + result("products_64x64_batch64", "rate", 100) + ", " +
         result("wire", "byte", link_byte_ns) + ", " +
         result("socket_pull", "float", row_float_ns) + "]}";
}

class OpenExchangeTest : public testing::Test {
 protected:
  // Loads the job as a process does that is started for `workers`.
  Result<Job> Load(std::vector<std::string> overrides, uint32_t workers) {
    overrides.emplace_back("parallel.constants=c.json");
    return LoadPlannedJob(*files_, kPath, &overrides, workers, DataFiles::kNotNeeded);
  }
  DenseExchange Chosen(const std::vector<std::string>& overrides, uint32_t workers) {
    const Result<Job> job = Load(overrides, workers);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return job.ok() ? job->parallel.dense_exchange : DenseExchange();
  }
  void Measured(double link_byte_ns, double row_float_ns) {
    const std::string text = Constants(link_byte_ns, row_float_ns);
    EXPECT_TRUE(WriteFileAtomically(*files_, "c.json", text).ok());
  }

  const std::unique_ptr<FileSystem> files_ = FilesWith(TwoTables({256, 256}, 4096));
};

TEST_F(OpenExchangeTest, TheCheaperOneIsChosenAndASaidOneStays) {
  Measured(100, 0.1);  // Workers reach each other slowly.
  EXPECT_EQ(Chosen({}, 4), DenseExchange::kServers);
  EXPECT_EQ(Chosen({"parallel.dense_exchange=allreduce"}, 4), DenseExchange::kAllreduce);
  Measured(0.1, 100);  // Servers are slow.
  EXPECT_EQ(Chosen({}, 4), DenseExchange::kAllreduce);
  EXPECT_EQ(Chosen({"parallel.dense_exchange=servers"}, 4), DenseExchange::kServers);
  EXPECT_EQ(Chosen({"parallel.parallel_mode=data_parallel"}, 4), DenseExchange::kServers);
}

TEST_F(OpenExchangeTest, TheChoiceIsToldAndPrinted) {
  Measured(100, 0.1);
  const Job job = *Load({}, 4);
  const std::string line = StrategyLine(job, *StrategyOf(job, 4));
  EXPECT_THAT(line, AllOf(HasSubstr("whole layers because parallel.dense_exchange is servers"),
                          HasSubstr("chose parallel.dense_exchange=servers: "),
                          HasSubstr("by the costs, the other ")));
  EXPECT_THAT(PrintJob(job), HasSubstr("\"dense_exchange\": \"servers\""));
  // The printed job has the exchange that was chosen, whatever would be chosen now.
  const Job again = GoodJob({}, PrintJob(job));
  EXPECT_EQ(JobDigest(again), JobDigest(job));
  EXPECT_FALSE(again.parallel.exchange_open);
  EXPECT_TRUE(StrategyOf(again, 4)->data_parallel());
}

TEST_F(OpenExchangeTest, MembersChooseAsTheSchedulerDoesIfTheJobSaysHowManyThereAre) {
  Measured(100, 0.1);
  const std::vector<std::string> four = {"parallel.device_num=4"};
  EXPECT_EQ(JobDigest(*Load(four, 0)), JobDigest(*Load(four, 4)));
  EXPECT_THAT(Load({}, 0).status().message(),
              AllOf(HasSubstr("job.json: parallel.dense_exchange"), HasSubstr("give "),
                    HasSubstr("parallel.device_num, or set dense_exchange")));
}

// What counts under allreduce alone leaves one choice, and a limit another.
TEST_F(OpenExchangeTest, OnlyWhatTheJobCanHaveIsChosen) {
  Measured(100, 0.1);
  EXPECT_EQ(Chosen({"parallel.enable_parallel_optimizer=true"}, 4), DenseExchange::kAllreduce);
  EXPECT_EQ(Chosen({"model.layers.3.shard=[1,4]"}, 4), DenseExchange::kAllreduce);
  const Result<Job> none = Load({"parallel.worker_memory_limit=1KiB"}, 4);
  EXPECT_THAT(none.status().message(),
              AllOf(HasSubstr("worker_memory_limit: it is 1.00 KiB"), HasSubstr("needs least")));
  const Result<Job> async = Load({"train.mode=async"}, 4);
  EXPECT_THAT(async.status().message(), AllOf(HasSubstr("train.mode"), HasSubstr("use sync")));
}

// Whoever counts keys has tables placed by them: where rows from servers are slow, workers keep the
// most frequent ones, and few wide rows are cut by columns.
TEST_F(OpenExchangeTest, TablesAreChosenByTheKeysThatTheJobCounts) {
  Measured(0.1, 100);
  const std::vector<std::string> counted = {R"(data.distinct={"c": 100000, "d": 3, "e": 2})",
                                            R"(data.distinct_half={"c": 20, "d": 1, "e": 1})",
                                            "parallel.device_num=4"};
  const Job job = *Load(counted, 4);
  EXPECT_GE(job.tables[0].vocab_cache_size, 100u);
  EXPECT_EQ(job.tables[1].slice_mode, SliceMode::kColumn) << "5 rows are uneven over 4 servers";
  EXPECT_THAT(job.parallel.choice, AllOf(HasSubstr("; chose model.tables.0.vocab_cache_size="),
                                         HasSubstr("model.tables.1.slice_mode=table_column_slice"),
                                         HasSubstr("ms of a step less, by how often keys come")));
  EXPECT_TRUE(StrategyOf(job, 4)->data_parallel());
  EXPECT_EQ(JobDigest(*Load(counted, 0)), JobDigest(job)) << "members choose alike";
  // A setting that the job names stays as it is.
  std::vector<std::string> said = counted;
  said.insert(said.end(),
              {"model.tables.0.vocab_cache_size=0", "model.tables.0.slice_mode=batch_slice",
               "model.tables.1.slice_mode=batch_slice", "model.tables.1.vocab_cache_size=0"});
  EXPECT_EQ(Load(said, 4)->tables[0].vocab_cache_size, 0u);
  EXPECT_EQ(Load(said, 4)->tables[1].slice_mode, SliceMode::kBatch);
  // Without counts, or without a search, nothing is chosen.
  EXPECT_EQ(Load({}, 4)->tables[0].vocab_cache_size, 0u);
  std::vector<std::string> unsearched = counted;
  unsearched.emplace_back("parallel.parallel_mode=data_parallel");
  EXPECT_EQ(Load(unsearched, 4)->tables[0].vocab_cache_size, 0u);
}

}  // namespace
}  // namespace hdps
