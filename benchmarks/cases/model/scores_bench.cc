// Measures how many rows of files a second hdps predict and hdps evaluate score, beside the forward
// products of the model alone, for each form of the first layer.
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/yardsticks/model_products.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tools/plan/job_shape.h"
#include "tools/scoring/scoring.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "scores";
constexpr uint32_t kBatch = 4096;

// Criteo's shape, with rows for most keys that are scored.
struct Work {
  const char* name;
  const char* model;  // Settings of the job's model.
};
constexpr Work kWorks[] = {
    {"wide_deep_dim16", R"("type": "wide_deep", "embedding_dim": 16, "hidden": [256, 128, 64])"},
    {"wide_deep_dim4", R"("type": "wide_deep", "embedding_dim": 4, "hidden": [256, 128, 64])"},
};

struct Rows {
  uint64_t trained, scored, first;
};
Rows RowsOf(const BenchSetting& setting) {
  const uint64_t part = setting.quick ? 16 : 1;
  return {64 * kBatch / part, 256 * kBatch / part, kBatch};
}

// Writes a log, and beside it the first rows of those to score.
Status WriteData(const BenchSetting& setting, FileSystem& files, const std::string& folder) {
  if (files.Exists(JoinPath(folder, "first.tsv"))) return {};
  const Rows rows = RowsOf(setting);
  SyntheticLogSpec log;
  log.rows = rows.trained;
  log.eval_rows = rows.scored;
  log.vocabulary = 100'000;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, folder, log).status());
  constexpr uint64_t kBytesMax = uint64_t{1} << 32;
  HDPS_ASSIGN_OR_RETURN(const std::string text,
                        ReadWholeFile(files, JoinPath(folder, "eval.tsv"), kBytesMax));
  size_t end = 0;
  for (uint64_t row = 0; row < rows.first; ++row) end = text.find('\n', end) + 1;
  return WriteFileAtomically(files, JoinPath(folder, "first.tsv"), text.substr(0, end));
}

// Scores files, and counts the rows behind the first ones: what a command does before them, such as
// loading the rows of a checkpoint, does not count.
class Scored {
 public:
  Scored(const BenchSetting& setting, FileSystem& files, std::string folder, std::string out,
         std::vector<std::string> overrides)
      : files_(files),
        rows_(RowsOf(setting)),
        folder_(std::move(folder)),
        executor_(NewTbbExecutor(setting.threads)) {
    flags_.checkpoint = std::move(out);
    flags_.which = WhichCheckpoint::kNewest;
    flags_.overrides = std::move(overrides);
  }
  using Run = Status (*)(const CommonFlags&, FileSystem&, Executor&, std::ostream&);
  // Returns rows a second; 0 after a failure, which status() keeps.
  double RowsPerSecond(Run run, bool writes) {
    const double first = Seconds(run, writes, "first.tsv"), all = Seconds(run, writes, "eval.tsv");
    return status_.ok() ? static_cast<double>(rows_.scored - rows_.first) / (all - first) : 0;
  }
  const Status& status() const { return status_; }

 private:
  double Seconds(Run run, bool writes, const std::string& data) {
    CommonFlags flags = flags_;
    flags.data = JoinPath(folder_, data);
    if (writes) flags.out = JoinPath(folder_, "scores");
    std::ostringstream to;
    return SecondsOf([&] {
      if (status_.ok()) status_ = run(flags, files_, *executor_, to);
    });
  }

  FileSystem& files_;
  const Rows rows_;
  const std::string folder_;
  CommonFlags flags_;
  const std::unique_ptr<Executor> executor_;
  Status status_;
};

Status RunCase(const BenchSetting& setting, FileSystem& files, const Work& work,
               BenchReport& report) {
  const std::string folder = JoinPath(setting.scratch, "data");
  HDPS_RETURN_IF_ERROR(WriteData(setting, files, folder));
  JobRunOptions options;
  options.job = R"({"name": "scores", "data": {"format": "criteo", "train": [")" +
                JoinPath(folder, "train.tsv") + R"("]}, "model": {)" + work.model +
                R"(, "device": "cpu"}, "train": {"batch_size": )" + std::to_string(kBatch) +
                R"(, "epochs": 1}, "cluster": {"heartbeat_ms": 20}})";
  options.placement = "inproc";
  options.out = JoinPath(setting.scratch, work.name);
  HDPS_RETURN_IF_ERROR(RunJob(setting, files, options).status());
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, {}));
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(job));
  HDPS_ASSIGN_OR_RETURN(const auto products,
                        ModelProducts::Make("cpu", setting.threads, shape.products, kBatch));
  const auto scored_as = [&](const char* first_layer) {
    return Scored(setting, files, folder, options.out,
                  {std::string("model.first_layer=") + first_layer});
  };
  Scored automatic = scored_as("auto"), plain = scored_as("plain"),
         on_rows = scored_as("unique_rows");
  const int steps = setting.quick ? 4 : 64;
  const auto samples = InterleavedSamples(
      setting.repeats, {[&] { return automatic.RowsPerSecond(RunPredict, true); },
                        [&] { return automatic.RowsPerSecond(RunEvaluate, false); },
                        [&] { return plain.RowsPerSecond(RunPredict, true); },
                        [&] { return on_rows.RowsPerSecond(RunPredict, true); },
                        [&] { return products->ForwardExamplesPerSecond(steps); }});
  for (const Scored* scored : {&automatic, &plain, &on_rows}) {
    HDPS_RETURN_IF_ERROR(scored->status());
  }
  const char* const figures[] = {"predict", "evaluate", "predict, first layer plain",
                                 "predict, first layer on unique rows"};
  for (size_t i = 0; i < std::size(figures); ++i) {
    report.AddBeside(kBench, work.name, figures[i], "rows/s", samples[i], "forward products alone",
                     samples.back());
  }
  return {};
}

}  // namespace

Status RunScoresBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const Work& work : kWorks) {
    if (!setting.Wants(work.name)) continue;
    PrintProgress(kBench, work.name);
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, work, report));
  }
  return {};
}

}  // namespace hdps
