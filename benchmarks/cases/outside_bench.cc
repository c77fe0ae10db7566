// Measures what a step costs a program that brings its own model: the pull of its rows, the push of
// their gradients and the end of the step, with servers in the same process.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "common/job/job_file.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "tools/tables/local_tables.h"

namespace hdps {
namespace {

constexpr char kBench[] = "outside";
constexpr uint64_t kExamples = 4096, kColumns = 26, kVocabulary = 100'000;
constexpr size_t kBatches = 8;
constexpr uint32_t kDim = 16;
constexpr char kJob[] = R"({"name": "outside", "model": {"type": "tables", "tables": [
  {"name": "deep", "dim": 16, "optimizer": {"kind": "adagrad"}},
  {"name": "wide", "dim": 1, "optimizer": {"kind": "adagrad"}}]}})";

struct Case {
  const char* name;
  uint32_t servers;
};
constexpr Case kCases[] = {{"one_server", 1}, {"two_servers", 2}};

// Returns keys of batches: log-uniform over the vocabulary of each column, as benchmarks/peers has.
std::vector<std::vector<Key>> DrawKeys(bool quick) {
  Random random(7);
  const uint64_t examples = quick ? kExamples / 4 : kExamples;
  std::vector<std::vector<Key>> batches(kBatches);
  for (std::vector<Key>& keys : batches) {
    for (uint64_t i = 0; i < examples * kColumns; ++i) {
      const double value = std::pow(static_cast<double>(kVocabulary), random.Unit());
      keys.push_back(i % kColumns * kVocabulary + static_cast<uint64_t>(value) - 1);
    }
  }
  return batches;
}

// The program: it gives the same gradient for every key.
class Program {
 public:
  Program(TableWorker& worker, bool quick) : worker_(worker), batches_(DrawKeys(quick)) {
    gradients_.assign(batches_.front().size() * kDim, 1e-4f);
    rows_.resize(gradients_.size());
    sums_.resize(gradients_.size());
  }

  uint64_t keys() const { return batches_.size() * batches_.front().size(); }  // Of all batches.
  double copied_megabytes() const {
    return static_cast<double>(worker_.copied_bytes()) * 1e-6 / static_cast<double>(steps_);
  }

  // Makes a step of each batch.
  Status Train() {
    for (const std::vector<Key>& keys : batches_) {
      const AskedKeys asked[] = {{TableId{0}, keys}, {TableId{1}, keys}};
      HDPS_ASSIGN_OR_RETURN(const std::vector<PulledRows> pulled,
                            worker_.Pull(asked, PullFor::kStep));
      distinct_ = pulled[0].keys.size();
      HDPS_RETURN_IF_ERROR(worker_.PushEach(pulled[0], gradients_));
      HDPS_RETURN_IF_ERROR(
          worker_.PushEach(pulled[1], std::span(gradients_).first(pulled[1].positions.size())));
      HDPS_RETURN_IF_ERROR(worker_.Advance(kExamples));
      ++steps_;
    }
    return {};
  }
  // Copies the rows of a step of each batch, and as many sums of gradients.
  void Copy() {
    for (size_t b = 0; b < batches_.size(); ++b) {
      std::memcpy(rows_.data(), gradients_.data(), distinct_ * (kDim + 1) * sizeof(float));
      std::memcpy(sums_.data(), rows_.data(), distinct_ * (kDim + 1) * sizeof(float));
    }
  }

 private:
  TableWorker& worker_;
  const std::vector<std::vector<Key>> batches_;
  std::vector<float> gradients_, rows_, sums_;  // [keys of a batch, kDim]
  size_t distinct_ = 0;                         // Keys of the last step.
  uint64_t steps_ = 0;
};

Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c, BenchReport& report) {
  PrintProgress(kBench, c.name);
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(kJob, kBench, setting.overrides));
  LocalClusterOptions options;
  options.job = std::make_shared<const Job>(std::move(job));
  options.out = JoinPath(setting.scratch, c.name);
  options.num_servers = c.servers;
  options.threads = setting.threads;
  options.voice.notice = [](const std::string&) {};
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalTables> local,
                        LocalTables::Start(std::move(options), {}, files, *clock));
  TableWorker& worker = local->worker(0).worker();
  Program program(worker, setting.quick);
  Status status = program.Train();  // Makes the rows.
  const auto million_keys = [&](double seconds) {
    return static_cast<double>(program.keys()) * 1e-6 / seconds;
  };
  const auto train = [&] {
    return million_keys(SecondsOf([&] {
      if (status.ok()) status = program.Train();
    }));
  };
  const auto copy = [&] { return million_keys(SecondsOf([&] { program.Copy(); })); };
  const auto samples = InterleavedSamples(setting.repeats, {train, copy});
  if (status.ok()) status = worker.Finish();
  HDPS_RETURN_IF_ERROR(status);
  report.AddBeside(kBench, c.name, "pull, push, advance", "M keys/s", samples[0],
                   "a copy of rows and sums", samples[1]);
  report.Add(kBench, c.name, "copied a step", "MB", {program.copied_megabytes()});
  return {};
}

}  // namespace

Status RunOutsideBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, report));
  }
  return {};
}

}  // namespace hdps
