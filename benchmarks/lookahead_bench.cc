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
constexpr int64_t kFirstSteps = 2;  // Not counted: nothing could be asked for ahead of them.

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
  return static_cast<double>(run.steady_times.total_ns) * 1e-6 /
         static_cast<double>(run.steady_times.steps);
}

// One case's samples, [repeats].
struct Samples {
  std::vector<double> ahead_ms, in_time_ms, pull_ms;
};

void Report(const std::string& name, const Samples& samples, BenchReport& report) {
  std::vector<double> in_time_rate, ahead_rate;
  for (size_t i = 0; i < samples.ahead_ms.size(); ++i) {
    in_time_rate.push_back(1e3 * kBatch / samples.in_time_ms[i]);
    ahead_rate.push_back(1e3 * kBatch / samples.ahead_ms[i]);
  }
  report.AddBeside(kBench, name, "examples, one step ahead", "examples/s", ahead_rate,
                   "none ahead, same digest", in_time_rate);
  report.Add(kBench, name, "step, one ahead", "ms", samples.ahead_ms);
  report.Add(kBench, name, "step, none ahead", "ms", samples.in_time_ms);
  report.Add(kBench, name, "wait for rows, none ahead", "ms", samples.pull_ms);
}

}  // namespace

Status RunLookaheadBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  std::vector<Case> cases;
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) cases.push_back(c);
  }
  if (cases.empty()) return Status();
  SyntheticLogSpec log;
  const int64_t steps = setting.quick ? 8 : 16;
  log.rows = uint64_t{kBatch} * static_cast<uint64_t>(steps);
  log.eval_rows = 0;
  log.vocabulary = 20'000;
  log.zipf = 0;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  int runs = 0;
  const auto run = [&](uint32_t lookahead, SlowLink& link) {
    JobRunOptions options = JobOf(JoinPath(setting.scratch, "train.tsv"), lookahead,
                                  JoinPath(setting.scratch, std::to_string(runs++)));
    options.server_link = &link;
    options.steady_from = kFirstSteps;
    options.steady_to = steps - 1;  // Behind the last one nothing is asked for.
    return RunJob(setting, files, options);
  };
  std::vector<Samples> samples(cases.size());
  std::vector<double> compute_ms;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    SayProgress(kBench, "run " + std::to_string(repeat + 1));
    // Without delay: how long a step computes, and how many bytes it pulls.
    SlowLink free;
    HDPS_ASSIGN_OR_RETURN(const JobRun plain, run(0, free));
    const double compute_ns = static_cast<double>(plain.steady_times.compute_ns) /
                              static_cast<double>(plain.steady_times.steps);
    const double bytes =
        static_cast<double>(free.bytes_pulled) / static_cast<double>(plain.times.steps);
    compute_ms.push_back(compute_ns * 1e-6);
    for (size_t c = 0; c < cases.size(); ++c) {
      SlowLink slow_in_time, slow_ahead;
      for (SlowLink* link : {&slow_in_time, &slow_ahead}) {
        link->ns_per_byte = compute_ns / bytes;  // A pull takes as long as computing a step.
        link->pushes_too = cases[c].pushes_too;
      }
      HDPS_ASSIGN_OR_RETURN(const JobRun in_time, run(0, slow_in_time));
      HDPS_ASSIGN_OR_RETURN(const JobRun ahead, run(1, slow_ahead));
      if (ahead.digest != in_time.digest || ahead.digest != plain.digest) {
        return {Code::kCorruption, std::string(kBench) + ": the digest ahead is " + ahead.digest +
                                       ", in time " + in_time.digest};
      }
      samples[c].in_time_ms.push_back(MsAStep(in_time));
      samples[c].ahead_ms.push_back(MsAStep(ahead));
      samples[c].pull_ms.push_back(static_cast<double>(in_time.steady_times.pull_wait_ns) * 1e-6 /
                                   static_cast<double>(in_time.steady_times.steps));
    }
  }
  for (size_t c = 0; c < cases.size(); ++c) Report(cases[c].name, samples[c], report);
  report.Add(kBench, "both", "compute", "ms", compute_ms);
  return Status();
}

}  // namespace hdps
