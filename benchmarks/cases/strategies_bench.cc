// Checks the costs by which strategies and placements are chosen: predicts and runs the same job
// with a dozen strategies, with its dense layers at the servers, and with rows kept at the workers.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/cases/shared_rates.h"
#include "benchmarks/clusters/job_run.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/planning/layer_facts.h"
#include "common/planning/strategy_cost.h"
#include "common/planning/strategy_of_job.h"
#include "common/planning/table_choices.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "strategies";
constexpr uint32_t kWorkers = 4;
constexpr uint32_t kFields = 8, kVocabulary = 1000;
constexpr double kMilli = 1e3;
// First steps of the second epoch, in which the pipeline fills; not counted.
constexpr int64_t kFirstSteps = 4;

// A placement to measure: `shard` of each layer, empty for a data parallel layer, the exchange, and
// the rows that each worker keeps of all kFields * kVocabulary.
struct Case {
  const char* name;
  const char *rows = "", *h1 = "", *h2 = "", *h3 = "";
  const char* exchange = "allreduce";
  uint32_t kept = 0;
};
constexpr Case kCases[] = {
    {"data_parallel", "", "", "", ""},
    {"first_by_columns", "", "[1, 4]", "", ""},
    {"second_by_columns", "", "", "[1, 4]", ""},
    {"all_by_columns", "", "[1, 4]", "[1, 4]", "[1, 4]"},
    {"all_by_rows", "", "[4, 1]", "[4, 1]", "[4, 1]"},
    {"rows_and_columns", "", "[2, 2]", "[2, 2]", "[2, 2]"},
    {"columns_then_rows", "", "[1, 4]", "[4, 1]", ""},
    {"two_copies", "", "[[2, 1], [1, 1]]", "[[2, 1], [1, 1]]", "[[2, 1], [1, 1]]"},
    {"four_copies", "", "[[1, 1], [1, 1]]", "[[1, 1], [1, 1]]", "[[1, 1], [1, 1]]"},
    {"examples_and_columns", "", "[[2, 1], [1, 2]]", "[[2, 1], [1, 2]]", "[[2, 1], [1, 2]]"},
    {"rows_by_features", "[1, 4]", "", "", ""},
    {"features_then_rows", "[1, 4]", "[4, 1]", "", ""},
    {.name = "kept_400", .kept = 400},
    {.name = "kept_4000", .kept = 4000},
    {.name = "servers", .exchange = "servers"},
    {.name = "servers_kept_400", .exchange = "servers", .kept = 400},
    {.name = "servers_kept_4000", .exchange = "servers", .kept = 4000},
};

uint32_t BatchOf(const BenchSetting& setting) { return setting.quick ? 512 : 1024; }
int64_t StepsOf(const BenchSetting& setting) { return setting.quick ? 12 : 40; }

std::string JobText(const BenchSetting& setting, const Case& c, const std::string& log) {
  const auto shard = [](const char* tuples) {
    return *tuples == 0 ? std::string() : std::string(R"(, "shard": )") + tuples;
  };
  std::string fields;
  for (uint32_t f = 1; f <= kFields; ++f) {
    fields += std::string(f > 1 ? ", " : "") + "\"C" + std::to_string(f) + "\"";
  }
  const auto dense = [&](const char* name, const char* input, int units, const char* tuples) {
    return R"(, {"name": ")" + std::string(name) + R"(", "inputs": [")" + input +
           R"("], "units": )" + std::to_string(units) + R"(, "activation": "relu")" +
           shard(tuples) + "}";
  };
  return R"({"name": "strategies", "data": {"format": "criteo", "train": [")" + log +
         R"("]}, "model": {"type": "graph", "device": "cpu", "tables": [{"name": "t", "dim": 16,
         "vocab_cache_size": )" +
         std::to_string(c.kept) + R"(}],
         "layers": [{"name": "rows", "kind": "embedding", "table": "t", "features": [)" +
         fields + "]" + shard(c.rows) + "}" + dense("h1", "rows", 512, c.h1) +
         dense("h2", "h1", 512, c.h2) + dense("h3", "h2", 256, c.h3) +
         R"(, {"name": "logit", "inputs": ["h3"], "units": 1}]},
         "parallel": {"parallel_mode": "hybrid_parallel", "dense_exchange": ")" +
         c.exchange + R"("},
         "train": {"epochs": 2, "batch_size": )" +
         std::to_string(BatchOf(setting)) + "}}";
}

struct Measured {
  const Case* of = nullptr;
  Job job;
  JobFacts facts;
  Strategy strategy;
  JobRunOptions options;
  std::vector<double> step_ms;  // One per turn.
};

Result<Measured> Prepare(const BenchSetting& setting, const Case& c, const std::string& log) {
  Measured made;
  made.of = &c;
  JobRunOptions& options = made.options;
  options.job = JobText(setting, c, log);
  options.overrides = setting.overrides;
  options.placement = "inproc";
  options.workers = kWorkers;
  options.steady_from = StepsOf(setting) + kFirstSteps;
  options.steady_to = 2 * StepsOf(setting);
  options.out = JoinPath(setting.scratch, c.name);
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, options.overrides));
  HDPS_ASSIGN_OR_RETURN(made.strategy, StrategyOf(job, kWorkers));
  made.facts = FactsOf(job);
  made.job = job;
  return made;
}

double PredictedSeconds(const Measured& of, const StepRates& rates) {
  double seconds = TotalOf(of.facts, of.strategy, rates).seconds;
  const SyntheticLogSpec log;
  TableQuestion question = {.servers = 1, .workers = kWorkers, .rates = rates};
  for (const std::string& field : FeaturesOf(of.job.data).sparse) {
    question.laws[field] = {double(kVocabulary), log.zipf};
  }
  const auto only_its_own = [](const std::vector<std::string>&) { return false; };
  for (const TableChoices& table : TableChoicesOf(of.job, question, only_its_own)) {
    seconds += table.options[0].seconds;
  }
  return seconds;
}

// Measures steps, because the workers' numbers of examples differ between strategies.
Status RunOnce(const BenchSetting& setting, FileSystem& files, Measured* measured) {
  HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, measured->options));
  HDPS_RETURN_IF_ERROR(files.RemoveAll(measured->options.out));
  const StepTimes& times = run.steady_times;
  if (times.steps == 0) return {Code::kUnavailable, "strategies: no steady steps"};
  measured->step_ms.push_back(double(times.total_ns) * 1e-6 / double(times.steps));
  return {};
}

StepRates MedianRates(const std::vector<StepRates>& rates) {
  const auto median = [&](double StepRates::*rate) {
    std::vector<double> samples;
    for (const StepRates& one : rates) samples.push_back(one.*rate);
    return MedianOf(samples);
  };
  StepRates middle;
  for (double StepRates::*const rate :
       {&StepRates::flops_per_second, &StepRates::memory_bytes_per_second,
        &StepRates::link_bytes_per_second, &StepRates::exchange_seconds,
        &StepRates::update_float_seconds, &StepRates::row_float_seconds, &StepRates::row_seconds}) {
    middle.*rate = median(rate);
  }
  return middle;
}

void ReportRates(const StepRates& rates, BenchReport& report) {
  const auto add = [&](const char* figure, const char* unit, double value) {
    report.Add(kBench, "a worker's rates", figure, unit, {value});
  };
  constexpr double kGiga = 1e9, kMicro = 1e6;
  add("products", "Gflop/s", rates.flops_per_second / kGiga);
  add("values", "GB/s", rates.memory_bytes_per_second / kGiga);
  add("link", "GB/s", rates.link_bytes_per_second / kGiga);
  add("exchange", "us", rates.exchange_seconds * kMicro);
  add("row", "ns/float", rates.row_float_seconds * kGiga);
  add("row", "ns", rates.row_seconds * kGiga);
  add("update", "ns/float", rates.update_float_seconds * kGiga);
}

void Report(const std::vector<Measured>& cases, const StepRates& rates, BenchReport& report) {
  std::vector<double> measured, predicted;
  for (const Measured& one : cases) {
    measured.push_back(MedianOf(one.step_ms));
    predicted.push_back(kMilli * PredictedSeconds(one, rates));
  }
  const std::vector<double> measured_rank = RanksOf(measured), predicted_rank = RanksOf(predicted);
  for (size_t i = 0; i < cases.size(); ++i) {
    const char* const name = cases[i].of->name;
    report.Add(kBench, name, "measured", "ms", cases[i].step_ms);
    report.AddBeside(kBench, name, "predicted", "ms", {predicted[i]}, "measured", {measured[i]});
    report.AddBeside(kBench, name, "rank, predicted", "", {predicted_rank[i]}, "measured",
                     {measured_rank[i]});
  }
  if (cases.size() < 2) return;
  report.Add(kBench, "all", "Spearman's rank correlation", "",
             {RankCorrelation(measured, predicted)});
}

}  // namespace

// Measures rates and runs in turns, so that other load on the machine hits all strategies alike.
Status RunStrategiesBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  SyntheticLogSpec log;
  log.rows = uint64_t(BatchOf(setting)) * uint64_t(StepsOf(setting));
  log.eval_rows = 0;
  log.numeric = 0;
  log.categorical = kFields;
  log.vocabulary = kVocabulary;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(setting.scratch));
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  std::vector<Measured> cases;
  for (const Case& c : kCases) {
    if (!setting.Wants(c.name)) continue;
    HDPS_ASSIGN_OR_RETURN(Measured made,
                          Prepare(setting, c, JoinPath(setting.scratch, "train.tsv")));
    cases.push_back(std::move(made));
  }
  if (cases.empty()) return {};
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(cases[0].options.job, kBench, setting.overrides));
  std::vector<StepRates> rates;
  for (int turn = 0; turn < setting.repeats; ++turn) {
    HDPS_ASSIGN_OR_RETURN(
        const StepRates of_turn,
        MeasureSharedRates(setting, files, job, kWorkers, "rates" + std::to_string(turn)));
    rates.push_back(of_turn);
    for (Measured& measured : cases) {
      PrintProgress(kBench, std::string(measured.of->name) + ", run " + std::to_string(turn + 1));
      HDPS_RETURN_IF_ERROR(RunOnce(setting, files, &measured));
    }
  }
  const StepRates middle = MedianRates(rates);
  ReportRates(middle, report);
  Report(cases, middle, report);
  return {};
}

}  // namespace hdps
