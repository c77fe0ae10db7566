// Measures the gain of requesting the rows of the next steps while this one is computed, and checks
// that the result stays the same to the bit.
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/clusters/slow_link.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "lookahead";
constexpr uint32_t kBatch = 2048;
constexpr int64_t kFirstSteps = 4;  // Not counted: no lookahead was possible before them.
// ^Steps of lookahead; the first is the yardstick of the others.
constexpr uint32_t kDepths[] = {0, 1, 2, 3};

// Returns a job with 26 keys per example, each uniform over 20,000 values: about one in twenty rows
// of a step is also in the previous one. The dense layers are the worker's own (allreduce), so only
// rows go over the link.
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
// slow_rows: only pulls are slow, as with rows on a disk or a busy server. thin_link: the link is
// as slow for gradients, which must arrive before the next step.
constexpr Case kCases[] = {{"slow_rows", false}, {"thin_link", true}};

// Samples of a case at one depth, [repeats].
struct Samples {
  std::vector<double> step_ms, pull_ms, push_ms, compute_ms;

  void Add(const JobRun& run) {
    const auto ms = [&](int64_t ns) {
      return static_cast<double>(ns) * 1e-6 / static_cast<double>(run.steady_times.steps);
    };
    step_ms.push_back(ms(run.steady_times.total_ns));
    pull_ms.push_back(ms(run.steady_times.pull_wait_ns));
    push_ms.push_back(ms(run.steady_times.push_wait_ns));
    compute_ms.push_back(ms(run.steady_times.compute_ns));
  }
  std::vector<double> Rates() const {
    std::vector<double> rates;
    for (const double ms : step_ms) rates.push_back(1e3 * kBatch / ms);
    return rates;
  }
};

void Report(const std::string& name, const std::vector<Samples>& depths, BenchReport& report) {
  for (size_t d = 0; d < depths.size(); ++d) {
    const std::string ahead = std::to_string(kDepths[d]) + " ahead";
    if (d > 0) {
      report.AddBeside(kBench, name, "examples, " + ahead, "examples/s", depths[d].Rates(),
                       "none ahead, same digest", depths[0].Rates());
    }
    report.Add(kBench, name, "step, " + ahead, "ms", depths[d].step_ms);
    report.Add(kBench, name, "wait for rows, " + ahead, "ms", depths[d].pull_ms);
    report.Add(kBench, name, "compute, " + ahead, "ms", depths[d].compute_ms);
    report.Add(kBench, name, "push, " + ahead, "ms", depths[d].push_ms);
  }
}

}  // namespace

Status RunLookaheadBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  std::vector<Case> cases;
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) cases.push_back(c);
  }
  if (cases.empty()) return Status();
  SyntheticLogSpec log;
  const int64_t steps = setting.quick ? 12 : 24;
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
    options.steady_to = steps - kFirstSteps;  // No lookahead is possible behind the last step.
    return RunJob(setting, files, options);
  };
  std::vector<std::vector<Samples>> samples(cases.size());  // [cases][depths]
  for (std::vector<Samples>& of_case : samples) of_case.resize(std::size(kDepths));
  std::vector<double> compute_ms;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, "run " + std::to_string(repeat + 1));
    // Without delay: how long a step computes, and how many bytes it pulls.
    SlowLink free;
    HDPS_ASSIGN_OR_RETURN(const JobRun plain, run(0, free));
    const double compute_ns = static_cast<double>(plain.steady_times.compute_ns) /
                              static_cast<double>(plain.steady_times.steps);
    const double bytes =
        static_cast<double>(free.bytes_pulled) / static_cast<double>(plain.times.steps);
    compute_ms.push_back(compute_ns * 1e-6);
    for (size_t c = 0; c < cases.size(); ++c) {
      for (size_t d = 0; d < std::size(kDepths); ++d) {
        SlowLink link;
        // A pull takes as long as the computation of a step.
        link.ns_per_byte = compute_ns / bytes;
        link.pushes_too = cases[c].pushes_too;
        HDPS_ASSIGN_OR_RETURN(const JobRun slow, run(kDepths[d], link));
        if (slow.digest != plain.digest) {
          return {Code::kCorruption, std::string(kBench) + ": the digest " +
                                         std::to_string(kDepths[d]) + " ahead is " + slow.digest +
                                         ", without delay " + plain.digest};
        }
        samples[c][d].Add(slow);
      }
    }
  }
  for (size_t c = 0; c < cases.size(); ++c) Report(cases[c].name, samples[c], report);
  report.Add(kBench, "all", "compute without delay", "ms", compute_ms);
  return Status();
}

}  // namespace hdps
