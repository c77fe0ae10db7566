// What to train, on what, and how: the job file as the program sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/cluster_spec.h"
#include "common/job/data_spec.h"
#include "common/job/model_spec.h"
#include "common/job/table_spec.h"
#include "common/metrics/metric.h"
#include "common/platform/file_system.h"

namespace hdps {

// Invariant of a job that LoadJob returned: every name refers to something, every number is in its
// range, layers are in order, `tables` holds what the layers use, and the dense table is last.
struct Job {
  std::string name = "job";
  uint64_t seed = 1;
  DataSpec data;
  ModelSpec model;
  std::vector<TableSpec> tables;
  TrainSpec train;
  ParallelSpec parallel;
  CheckpointSpec checkpoint;
  ClusterSpec cluster;
  std::vector<std::string> warnings;  // Keys that count for nothing, and the like; for the log.
};

// The features a job's data gives, in the order of the batch's columns.
struct FeatureNames {
  std::vector<std::string> sparse;
  std::vector<std::string> numeric;
};
FeatureNames FeaturesOf(const DataSpec& data);
// kIdx: numeric columns of an example.
uint64_t ImagePixels(const DataSpec& data);

// The tasks of a model: those that are spelled out, or else the one that `loss` says, without the
// name of a label.
std::vector<TaskSpec> TasksOf(const ModelSpec& model);

// A label column that the reader gives, and what its values are: whole numbers below num_classes,
// or any finite number where that is kLabelsAnyNumber.
struct LabelSpec {
  std::string name;  // Empty: the only one.
  uint32_t num_classes = 2;
};
inline constexpr uint32_t kLabelsAnyNumber = 1;
// Of each task, in order. 2 classes under logloss, bpr and sampled_softmax, the width of the logits
// under softmax, any number under squared_error. The job has passed ParseJob.
std::vector<LabelSpec> LabelsOf(const Job& job);
// Of the first task.
uint32_t NumClasses(const Job& job);

// What the scores under a loss are.
ScoreKind ScoreKindOf(LossKind loss);
// Whether rows have a column of the type; of csv alone.
bool HasColumn(const DataSpec& data, ColumnType type);
// What evaluations tell of each task, in order: see common/metrics/metric.h.
std::vector<TaskMetrics> MetricsOf(const Job& job);

// Why a worker that computes on a GPU cannot train this job, and what would mend it; empty: it can.
// The rule of a program's own optimizer is compiled for the host alone.
std::string WhyNotOnCuda(const Job& job);
// Why a worker that computes on a GPU does not keep and update dense tensors there; empty: it does.
std::string WhyDenseOnHost(const Job& job);

// Whether who loads a job will read its data: a server's or scheduler's machine need not have it.
enum class DataFiles : uint8_t { kMustExist, kNotNeeded };

// Reads a job file (JSON, one schema; docs/job_file.md), applies `overrides` ("key.path=value"
// each) and checks the whole. Relative data paths are sought from the folder of the job file, then
// from the working directory, and stored as found; under kMustExist each has to be there. ParseJob
// takes paths as they are and looks for nothing. kInvalidArgument names the file, the line, the
// field, the value, and what would be right. `registry` has the kinds of layers and the optimizers
// that the job may use; not given, the built-in ones.
Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides, DataFiles needed,
                    const JobRegistry& registry);
Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides,
                    DataFiles needed = DataFiles::kMustExist);
Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides, const JobRegistry& registry);
Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides);

// "a.b=1,c=[2,3]" as "a.b=1" and "c=[2,3]": the value of --set, cut at the commas that stand in no
// brackets and no quotes.
std::vector<std::string> SplitOverrides(const std::string& text);

// The job as JSON with every default written out and the model as a graph; ParseJob of it gives the
// same job.
std::string PrintJob(const Job& job);

// Equal for two jobs exactly when they train the same thing: all that PrintJob shows but the name,
// the paths, how many bad rows are borne, how far to train (epochs, max_steps) and when to
// evaluate, the device, which rows it keeps, the checkpoint and the cluster's timings. Checkpoints
// and joining members are matched by it.
uint64_t JobDigest(const Job& job);

// What follows from the job's tables and layers for checkpoints: tables, dims, rules, shards, seed.
uint64_t TablesDigest(const Job& job);

}  // namespace hdps
