// Measures the gain of hot rows cached at the worker: the same job with and without, in turns.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/clusters/slow_link.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "cache";
// The hot rows are chosen after 4 and 16 steps; later steps count.
constexpr int64_t kSteadyFrom = 20, kSteps = 60;

struct Case {
  const char* name;
  uint32_t batch;
  uint32_t categorical;  // Number of categorical fields.
  uint64_t vocabulary;   // Values per field.
  double zipf;
  bool buckets;        // Makes fields of the 13 numbers too.
  uint64_t kept_rows;  // Rows cached at the worker.
  const char* model;   // JSON, without vocab_cache_size.
  // Delay of pulled rows and pushed gradients; 0: the speed of loopback.
  double link_ns_per_byte = 0;
};

// REF-L: 39 fields and 200,000 rows of dim 80 with lazy Adam and of dim 1 with FTRL, of which
// 160,000 are cached. Its batch is 8,000 instead of 16,000, and its MLP is small.
constexpr Case kRefL = {"ref_l_small_mlp",
                        8000,
                        26,
                        7685,
                        1.05,
                        true,
                        160000,
                        R"({"type": "wide_deep", "embedding_dim": 80, "numeric": false,
                            "hidden": [64, 32]})"};
// The same rows with the least possible computation: their sum, and one product with a vector.
constexpr char kSumOfRows[] = R"({"type": "graph",
    "tables": [{"name": "wide", "dim": 1, "optimizer": {"kind": "ftrl", "learning_rate": 0.05}},
               {"name": "deep", "dim": 80}],
    "layers": [{"name": "wide", "kind": "embedding", "table": "wide", "combine": "sum"},
               {"name": "deep", "kind": "embedding", "table": "deep", "combine": "sum"},
               {"name": "tower", "inputs": ["deep"], "units": 1},
               {"name": "logit", "kind": "sum", "inputs": ["wide", "tower"]}]})";
constexpr Case kSum = {"ref_l_sum_of_rows", 8000, 26, 7685, 1.05, true, 160000, kSumOfRows};
// Uniform keys and few examples per step: nearly every lookup is a different row.
constexpr Case kUniform = {"uniform_sum_of_rows", 1000, 26, 7685, 0, true, 160000, kSumOfRows};
// Caches a tenth of the rows of skewed keys.
constexpr Case kTenth = {"zipf_1.1_a_tenth",
                         4096,
                         1,
                         200000,
                         1.1,
                         false,
                         20000,
                         R"({"type": "wide_deep", "embedding_dim": 16, "numeric": false,
                             "hidden": [16]})"};
// Puts the server behind a link of 1 Gbit/s: the case for cached rows without a GPU.
constexpr Case ThinLink(Case c) {
  c.name = "thin_link_ref_l_small_mlp";
  c.link_ns_per_byte = 8;
  return c;
}
constexpr Case kThinLink = ThinLink(kRefL);
const Case kCases[] = {kRefL, kSum, kUniform, kTenth, kThinLink};

std::string JobText(const Case& c, const std::string& folder, uint32_t batch) {
  std::string features;
  for (int i = 1; c.buckets && i <= 13; ++i) {
    features += std::string(features.empty() ? "" : ", ") + R"({"name": "B)" + std::to_string(i) +
                R"(", "kind": "bucketized", "from": ["I)" + std::to_string(i) +
                R"("], "boundaries": [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 1000]})";
  }
  return R"({"name": "cache", "data": {"format": "criteo", "shuffle_rows": 0, "train": [")" +
         JoinPath(folder, "train.tsv") + R"("], "features": [)" + features +
         R"(]}, "train": {"batch_size": )" + std::to_string(batch) +
         R"(}, "parallel": {"gradients_mean": true}, "model": )" + c.model + "}";
}

// Samples of all runs of one setting.
struct Samples {
  std::vector<double> steady, whole, megabytes_a_step, hit_rate, swaps;

  void Take(const JobRun& run) {
    steady.push_back(run.steady_examples_per_second);
    whole.push_back(run.examples_per_second);
    megabytes_a_step.push_back(static_cast<double>(run.bytes_sent + run.bytes_received) * 1e-6 /
                               static_cast<double>(run.steps));
    hit_rate.push_back(run.cache_hit_rate);
    swaps.push_back(run.cache_swaps);
  }
};

Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c, BenchReport& report) {
  const std::string folder = JoinPath(setting.scratch, c.name);
  const uint32_t batch = setting.quick ? c.batch / 4 : c.batch;
  SyntheticLogSpec log;
  log.rows = uint64_t{batch} * kSteps;
  log.eval_rows = 0;
  log.categorical = c.categorical;
  log.vocabulary = c.vocabulary;
  log.zipf = c.zipf;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, folder, log).status());
  JobRunOptions options;
  options.job = JobText(c, folder, batch);
  options.steady_from = kSteadyFrom;
  options.steady_to = kSteps;
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, setting.overrides));
  Samples off, on;
  std::string digest;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    for (Samples* samples : {&off, &on}) {
      options.overrides = setting.overrides;
      options.overrides.push_back("model.device=" + setting.device);
      if (samples == &on) {
        for (size_t t = 0; t < job.tables.size(); ++t) {
          if (job.tables[t].dense) continue;
          const bool graph = job.model.type == "graph";
          options.overrides.push_back(
              (graph ? "model.tables." + std::to_string(t) + "." : std::string("model.")) +
              "vocab_cache_size=" + std::to_string(c.kept_rows));
        }
      }
      PrintProgress(kBench, std::string(c.name) + (samples == &on ? " on" : " off") + ", run " +
                                std::to_string(repeat + 1));
      options.out = JoinPath(folder, "out");
      SlowLink link;
      link.ns_per_byte = c.link_ns_per_byte;
      link.pushes_too = true;
      if (link.ns_per_byte > 0) options.server_link = &link;
      HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, options));
      HDPS_RETURN_IF_ERROR(files.RemoveAll(options.out));
      if (run.steps == 0) return Status(Code::kUnavailable, "the job made no step");
      if (digest.empty()) digest = run.digest;
      if (run.digest != digest) {
        return Status(Code::kCorruption, std::string(c.name) + ": kept rows changed the result: " +
                                             run.digest + " instead of " + digest);
      }
      samples->Take(run);
    }
  }
  report.AddBeside(kBench, c.name, "examples", "examples/s", on.steady, "no row kept", off.steady);
  report.AddBeside(kBench, c.name, "examples, first choices included", "examples/s", on.whole,
                   "no row kept", off.whole);
  report.AddBeside(kBench, c.name, "to and from the servers, whole run", "MB a step",
                   on.megabytes_a_step, "no row kept", off.megabytes_a_step);
  report.Add(kBench, c.name, "hit rate", "of keys", on.hit_rate);
  report.Add(kBench, c.name, "rows brought in", "rows", on.swaps);
  return Status();
}

}  // namespace

Status RunCacheBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, report));
  }
  return Status();
}

}  // namespace hdps
