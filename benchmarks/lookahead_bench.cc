// What it brings to ask for the rows of the next step while this one is computed, and that the
// answer stays the same to the bit.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/job_run.h"
#include "benchmarks/slow_link.h"
#include "worker/data/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "lookahead";
constexpr uint32_t kBatch = 2048;

// 26 keys an example of 20,000 values each, all alike: of the rows of a step about one in twenty is
// in the one before. The dense layers are the worker's own (allreduce): what travels is rows.
JobRunOptions JobOf(const std::string& train, uint32_t lookahead, const std::string& out) {
  JobRunOptions run;
  run.job = R"({"name": "lookahead",
    "data": {"format": "criteo", "train": [")" +
            train + R"("]},
    "model": {"type": "wide_deep", "embedding_dim": 32, "hidden": [1024, 512], "device": "cpu"},
    "parallel": {"dense_exchange": "allreduce"},
    "train": {"batch_size": )" +
            std::to_string(kBatch) + R"(, "epochs": 1, "eval_each_epoch": false}})";
  run.overrides = {"train.lookahead=" + std::to_string(lookahead)};
  run.out = out;
  return run;
}

struct Case {
  const char* name;
  bool pushes_too;
};
// slow_rows: only reading takes long, as when rows come from a disk or from a server that many ask.
// thin_link: the link takes as long for the gradients, which must arrive before the next step.
constexpr Case kCases[] = {{"slow_rows", false}, {"thin_link", true}};

double MsAStep(const JobRun& run) {
  return static_cast<double>(run.times.total_ns) * 1e-6 / static_cast<double>(run.times.steps);
}

Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c,
               const std::string& train, BenchReport& report) {
  int runs = 0;
  const auto run = [&](uint32_t lookahead, SlowLink& link) {
    SayProgress(kBench, std::string(c.name) + ", ahead " + std::to_string(lookahead));
    JobRunOptions options =
        JobOf(train, lookahead,
              JoinPath(setting.scratch, std::string(c.name) + "_" + std::to_string(runs++)));
    options.server_link = &link;
    return RunJob(setting, files, options);
  };
  std::vector<double> ahead_ms, in_time_ms, compute_ms, pull_ms;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    // Without delay: how long a step computes, and how many bytes it pulls.
    SlowLink free;
    HDPS_ASSIGN_OR_RETURN(const JobRun plain, run(0, free));
    const auto steps = static_cast<double>(plain.times.steps);
    const double compute_ns = static_cast<double>(plain.times.compute_ns) / steps;
    const double bytes = static_cast<double>(free.bytes_pulled) / steps;
    SlowLink slow_in_time, slow_ahead;
    for (SlowLink* link : {&slow_in_time, &slow_ahead}) {
      link->ns_per_byte = compute_ns / bytes;  // A pull takes as long as computing a step.
      link->pushes_too = c.pushes_too;
    }
    HDPS_ASSIGN_OR_RETURN(const JobRun in_time, run(0, slow_in_time));
    HDPS_ASSIGN_OR_RETURN(const JobRun ahead, run(1, slow_ahead));
    if (ahead.digest != in_time.digest || ahead.digest != plain.digest) {
      return {Code::kCorruption, std::string(kBench) + ": the digest ahead is " + ahead.digest +
                                     ", in time " + in_time.digest};
    }
    in_time_ms.push_back(MsAStep(in_time));
    ahead_ms.push_back(MsAStep(ahead));
    compute_ms.push_back(compute_ns * 1e-6);
    pull_ms.push_back(static_cast<double>(in_time.times.pull_wait_ns) * 1e-6 / steps);
  }
  std::vector<double> in_time_rate, ahead_rate;
  for (size_t i = 0; i < ahead_ms.size(); ++i) {
    in_time_rate.push_back(1e3 * kBatch / in_time_ms[i]);
    ahead_rate.push_back(1e3 * kBatch / ahead_ms[i]);
  }
  report.AddBeside(kBench, c.name, "examples, one step ahead", "examples/s", ahead_rate,
                   "none ahead, same digest", in_time_rate);
  report.Add(kBench, c.name, "step, one ahead", "ms", ahead_ms);
  report.Add(kBench, c.name, "step, none ahead", "ms", in_time_ms);
  report.Add(kBench, c.name, "compute", "ms", compute_ms);
  report.Add(kBench, c.name, "wait for rows, none ahead", "ms", pull_ms);
  return Status();
}

}  // namespace

Status RunLookaheadBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  SyntheticLogSpec log;
  log.rows = uint64_t{kBatch} * (setting.quick ? 10 : 20);
  log.eval_rows = 1000;
  log.vocabulary = 20'000;
  log.zipf = 0;
  bool written = false;
  for (const Case& c : kCases) {
    if (!setting.Wants(c.name)) continue;
    if (!written) HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
    written = true;
    HDPS_RETURN_IF_ERROR(
        RunCase(setting, files, c, JoinPath(setting.scratch, "train.tsv"), report));
  }
  return Status();
}

}  // namespace hdps
