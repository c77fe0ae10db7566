// Measures how fast the rows of a server are saved and loaded, beside a plain file of the same
// bytes, and what saves cost a job that goes on training.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/clusters/row_load.h"
#include "benchmarks/yardsticks/plain_file.h"
#include "benchmarks/yardsticks/row_yardsticks.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/tables/joined_tables.h"
#include "common/platform/executor.h"
#include "server/shard.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "checkpoint";

struct Saved {
  std::vector<SavedFile> files;
  uint64_t bytes = 0, rows = 0;
};

Result<double> Load(FileSystem& files, const Job& job, Executor& executor,
                    const std::string& folder, const Saved& saved) {
  const uint64_t tables_digest = TablesDigest(job);
  const std::vector<uint32_t> first_of_group = TablesThatShareRows(job);
  Manifest manifest;
  manifest.tables_digest = tables_digest;
  manifest.num_shards = job.cluster.shards;
  manifest.clock = 1;
  manifest.files = saved.files;
  const std::vector<CheckpointPart> chain = {{folder, std::move(manifest)}};
  std::atomic<bool> failed{false};
  const double seconds = SecondsOf([&] {
    std::vector<std::unique_ptr<Shard>> shards(saved.files.size());
    executor.ParallelFor(shards.size(), [&](size_t s) {
      shards[s] = std::make_unique<Shard>(job, tables_digest, first_of_group,
                                          ShardId{static_cast<uint32_t>(s)}, nullptr);
      if (!shards[s]->Load(files, chain).ok()) failed = true;
    });
  });
  if (failed) return Status(Code::kCorruption, "checkpoint: what was saved does not load");
  return seconds;
}

Status RunCase(const BenchSetting& setting, FileSystem& files, uint32_t dim, BenchReport& report) {
  const std::string name = "adagrad_dim" + std::to_string(dim);
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(RowsJob(dim, "adagrad"), kBench, {}));
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.threads);
  const uint64_t bytes_wanted = uint64_t{1} << (setting.quick ? 27 : 29);
  const uint64_t rows = bytes_wanted / (sizeof(Key) + 2 * dim * sizeof(float));
  RowsAlone table(job, setting.threads);
  for (const StepKeys& list : AllKeys(rows)) table.PushAll(table.RequestsFor({list}));
  const std::string folder = JoinPath(setting.scratch, name), plain = folder + "_plain";
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  std::vector<double> save, write, load, read, load_again;
  Saved saved;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    Status status;
    const double save_seconds = SecondsOf([&] {
      Result<std::vector<SavedFile>> result = table.Save(files, folder, 1);
      status = result.status();
      if (result.ok()) saved.files = *std::move(result);
    });
    HDPS_RETURN_IF_ERROR(status);
    saved.bytes = saved.rows = 0;
    for (const SavedFile& file : saved.files) {
      saved.bytes += file.bytes;
      saved.rows += file.rows;
      ForgetFile(JoinPath(folder, file.name));
    }
    const double megabytes = static_cast<double>(saved.bytes) * 1e-6;
    save.push_back(megabytes / save_seconds);
    HDPS_ASSIGN_OR_RETURN(const double write_seconds, SecondsToWrite(files, plain, saved.bytes));
    write.push_back(megabytes / write_seconds);
    HDPS_ASSIGN_OR_RETURN(const double load_seconds, Load(files, job, *executor, folder, saved));
    load.push_back(megabytes / load_seconds);
    HDPS_ASSIGN_OR_RETURN(const double again, Load(files, job, *executor, folder, saved));
    load_again.push_back(megabytes / again);
    ForgetFile(plain);
    HDPS_ASSIGN_OR_RETURN(const double read_seconds, SecondsToRead(files, plain));
    read.push_back(megabytes / read_seconds);
  }
  report.AddBeside(kBench, name, "save", "MB/s", save, "plain write + fsync", write);
  report.AddBeside(kBench, name, "load", "MB/s", load, "plain read", read);
  report.Add(kBench, name, "load from memory", "MB/s", load_again);
  report.Add(kBench, name, "size", "MB", {static_cast<double>(saved.bytes) * 1e-6});
  return files.RemoveAll(folder);
}

// ---- Saves while training.

constexpr uint64_t kBatch = 1024;
// The rows of the first steps are new, and the last checkpoint of a job is saved behind its steps.
constexpr int64_t kSteadyFrom = 50, kBehindSteady = 10;

// A job without saves, or with some within its steady steps; `more` is a setting.
struct Saves {
  const char* what;
  std::string more;
  std::vector<double> rates = {};  // Examples a second.
};

Result<double> RateOf(const BenchSetting& setting, FileSystem& files, JobRunOptions run,
                      const Saves& saves, std::string* digest) {
  run.overrides.insert(run.overrides.begin(), saves.more);
  HDPS_ASSIGN_OR_RETURN(const JobRun done, RunJob(setting, files, run));
  HDPS_RETURN_IF_ERROR(files.RemoveAll(run.out));
  if (digest->empty()) *digest = done.digest;
  if (done.digest != *digest) {
    return Status(Code::kCorruption, std::string(saves.what) + ": the digest is " + done.digest +
                                         ", without saves " + *digest);
  }
  return done.steady_examples_per_second;
}

// Trains REF-S without saves, with full checkpoints and with deltas in turns.
Status RunWhileTraining(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  constexpr char kName[] = "while_training";
  if (!setting.Wants(kName)) return Status();
  constexpr int64_t kEpochSteps = 200;
  const int64_t epochs = setting.quick ? 8 : 24, steps = epochs * kEpochSteps;
  SyntheticLogSpec log;
  log.rows = kBatch * kEpochSteps;
  log.eval_rows = 0;
  log.vocabulary = 100'000;
  log.zipf = 1.05;
  const std::string folder = JoinPath(setting.scratch, kName);
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, folder, log).status());
  JobRunOptions run;
  run.job = R"({"name": "while_training", "data": {"format": "criteo", "train": [")" +
            JoinPath(folder, "train.tsv") +
            R"("]}, "model": {"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32],
      "device": "cpu"}, "train": {"epochs": )" +
            std::to_string(epochs) + R"(, "batch_size": )" + std::to_string(kBatch) + "}}";
  run.overrides = setting.overrides;
  run.placement = "servers";
  run.out = JoinPath(folder, "run");
  run.steady_from = kSteadyFrom;
  run.steady_to = steps - kBehindSteady;
  Saves none{"without saves", "checkpoint.every_steps=0"};
  Saves full{"full every 400 steps", "checkpoint.every_steps=400"};
  Saves deltas{"deltas every 400 steps", "checkpoint.delta_every_steps=400"};
  std::string digest;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, std::string(kName) + ", run " + std::to_string(repeat + 1));
    for (Saves* saves : {&none, &full, &deltas}) {
      HDPS_ASSIGN_OR_RETURN(const double rate, RateOf(setting, files, run, *saves, &digest));
      saves->rates.push_back(rate);
    }
  }
  for (const Saves* saves : {&full, &deltas}) {
    report.AddBeside(kBench, kName, std::string("examples, ") + saves->what, "examples/s",
                     saves->rates, "without saves, same digest", none.rates);
  }
  return files.RemoveAll(folder);
}

}  // namespace

Status RunCheckpointBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const uint32_t dim : {16u, 80u}) {
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, dim, report));
  }
  return RunWhileTraining(setting, files, report);
}

}  // namespace hdps
