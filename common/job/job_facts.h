// Facts derived from a job: features, labels, metrics, and where it can be trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct DataSpec;
struct Job;
struct LayerSpec;
struct ModelSpec;
struct TaskMetrics;  // common/metrics/metric.h
struct TaskSpec;
enum class ColumnType : uint8_t;
enum class LossKind : uint8_t;
enum class ScoreKind : uint8_t;

// The model.type of a job whose model is another program's, PyTorch's for example: it has tables
// and no layers. Its dense table holds the states of the workers' programs, tensor r that of rank
// r.
inline constexpr const char* kTablesType = "tables";
bool IsTablesJob(const Job& job);
// Returns kInvalidArgument if the job is such a one. `who` is what needs layers: "hdps predict".
Status NeedsLayers(const Job& job, const std::string& who);

// The features in a job's data, in the order of the batch's columns.
struct FeatureNames {
  std::vector<std::string> sparse;
  std::vector<std::string> numeric;
};
FeatureNames FeaturesOf(const DataSpec& data);
// Number of numeric columns of an example in kIdx data.
uint64_t ImagePixels(const DataSpec& data);

// Returns the tasks of a model: those that are listed, or else the single task of `loss`, whose
// label has no name.
std::vector<TaskSpec> TasksOf(const ModelSpec& model);

// A label column that the reader provides. Its values are whole numbers below num_classes, or any
// finite numbers if that is kLabelsAnyNumber.
struct LabelSpec {
  std::string name;  // Empty for the only one.
  uint32_t num_classes = 2;
};
inline constexpr uint32_t kLabelsAnyNumber = 1;
// Returns one for each task, in order: 2 classes under logloss, bpr and sampled_softmax, the width
// of the logits under softmax, any number under squared_error. Requires: ParseJob() accepted the
// job.
std::vector<LabelSpec> LabelsOf(const Job& job);

// Returns the meaning of scores under a loss.
ScoreKind ScoreKindOf(LossKind loss);
// Is true if rows have a column of the type; only if columns have names.
bool HasColumn(const DataSpec& data, ColumnType type);
// Returns the metrics of each task, in order; see common/metrics/metric.h.
std::vector<TaskMetrics> MetricsOf(const Job& job);

// Returns why a worker with a GPU cannot train this job, and the remedy; empty if it can. The rule
// of a program's own optimizer is compiled only for the host.
std::string WhyNotOnCuda(const Job& job);
// Is true if servers keep and update the dense tensors of a layer; otherwise workers do.
bool AtServers(const Job& job, const LayerSpec& layer);
// Returns why a worker with a GPU does not keep and update the dense tensors of a layer on it;
// empty if it does.
std::string WhyDenseOnHost(const Job& job, const LayerSpec& layer);
// The same for a layer that says nothing of itself.
std::string WhyDenseOnHost(const Job& job);
// Returns the settings dense_target that are cuda: of the model, and of layers by their names.
std::vector<std::string> CudaTargetsOf(const ModelSpec& model);

}  // namespace hdps
