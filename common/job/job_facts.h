// What follows from a job: its features, its labels and what is told of them, where it can be
// trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

struct DataSpec;
struct Job;
struct ModelSpec;
struct TaskMetrics;  // common/metrics/metric.h
struct TaskSpec;
enum class ColumnType : uint8_t;
enum class LossKind : uint8_t;
enum class ScoreKind : uint8_t;

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

}  // namespace hdps
