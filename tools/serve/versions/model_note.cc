// Inputs by columns, outputs by tasks.
#include "tools/serve/versions/model_note.h"

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"

namespace hdps {
namespace {

constexpr const char* kLogitName = "logit";

uint32_t ScoresARow(const Job& job) {
  const std::vector<LabelSpec> labels = LabelsOf(job);
  return job.model.loss == LossKind::kSoftmax ? labels[0].num_classes
                                              : static_cast<uint32_t>(labels.size());
}

// Returns an output for each task.
std::vector<TensorNote> PredictionsOf(const Job& job) {
  std::vector<TensorNote> outputs;
  for (const TaskSpec& task : TasksOf(job.model)) {
    const bool softmax = task.loss == LossKind::kSoftmax;
    const std::string what = task.loss == LossKind::kLogloss ? "probability"
                             : softmax                       ? "probabilities"
                                                             : "score";
    outputs.push_back({.name = task.label.empty() ? what : task.label + "." + what,
                       .datatype = "FP32",
                       .width = softmax ? ScoresARow(job) : 1});
  }
  return outputs;
}

bool HasLogits(const Job& job) { return job.model.loss != LossKind::kSampledSoftmax; }

std::vector<TensorNote> InputsOf(const DataSpec& columns) {
  std::vector<TensorNote> inputs;
  for (const ColumnSpec& column : columns.columns) {
    const bool number = column.type == ColumnType::kNumeric;
    const bool feature =
        number || column.type == ColumnType::kCategorical || column.type == ColumnType::kMulti;
    if (!feature) continue;
    const auto known = std::ranges::find(inputs, column.cell(), &TensorNote::name);
    if (known == inputs.end()) {
      inputs.push_back({.name = column.cell(), .datatype = number ? "FP32" : "BYTES"});
    } else if (!number) {
      known->datatype = "BYTES";  // One cell that is read as a number and as a text.
    }
  }
  return inputs;
}

// Returns column `of` of [rows, width] numbers.
std::vector<float> Column(const std::vector<float>& numbers, size_t width, size_t of) {
  std::vector<float> column;
  column.reserve(numbers.size() / width);
  for (size_t i = of; i < numbers.size(); i += width) column.push_back(numbers[i]);
  return column;
}

void AppendPredictions(const Job& job, const ScoredRows& scored,
                       std::vector<OutputColumn>* columns) {
  const std::vector<TensorNote> outputs = PredictionsOf(job);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorNote& output = outputs[i];
    columns->push_back({.name = output.name,
                        .width = output.width,
                        .numbers = outputs.size() == 1
                                       ? scored.predictions
                                       : Column(scored.predictions, outputs.size(), i),
                        .texts = {}});
  }
}

}  // namespace

Result<ModelNote> NoteOf(const std::string& name, const Job& job, const DataSpec& columns) {
  if (columns.format == DataFormat::kIdx) {
    return Status(Code::kInvalidArgument,
                  "data.format: images of idx files have no rows that a request could send; "
                  "expected csv, criteo, libsvm, libffm or libfm");
  }
  ModelNote note;
  note.name = name;
  note.has_columns = HasNamedColumns(columns.format);
  note.inputs = note.has_columns ? InputsOf(columns)
                                 : std::vector<TensorNote>{{.name = "row", .datatype = "BYTES"}};
  note.outputs = PredictionsOf(job);
  if (HasLogits(job)) {
    note.outputs.push_back({.name = kLogitName, .datatype = "FP32", .width = ScoresARow(job)});
  }
  return note;
}

Result<std::vector<OutputColumn>> OutputColumns(const ModelNote& note, const Job& job,
                                                std::span<const ScoreOutput> wanted,
                                                const ScoredRows& scored) {
  std::vector<OutputColumn> columns;
  for (const ScoreOutput output : wanted) {
    if (output == ScoreOutput::kPrediction) {
      AppendPredictions(job, scored, &columns);
    } else if (output == ScoreOutput::kLogit && HasLogits(job)) {
      columns.push_back(
          {.name = kLogitName, .width = ScoresARow(job), .numbers = scored.logits, .texts = {}});
    } else {
      std::string known;
      for (const TensorNote& one : note.outputs) known += (known.empty() ? "" : ", ") + one.name;
      return Status(Code::kInvalidArgument,
                    "the model " + note.name + " has no such output; expected " + known);
    }
  }
  return columns;
}

}  // namespace hdps
