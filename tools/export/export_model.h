// A checkpoint's model on its way into another program's format: rows, dense tensors, and outputs
// to check with.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tools/export/check_rows.h"
#include "tools/export/export.h"
#include "tools/export/export_rows.h"
#include "tools/export/sample_rows.h"
#include "tools/export/wanted_rows.h"
#include "worker/model/model.h"

namespace hdps {

// How much an exported model lacks the initial values that hdps reads for keys without a row.
struct UnknownInSample {
  uint64_t rows = 0;               // Rows of data that this counts over.
  uint64_t keys = 0, unknown = 0;  // Keys in these rows, as often as they occur, in every table.
  std::vector<uint64_t> table_keys, table_unknown;  // Distinct ones, [tables].
  // Differences of the scores, of probabilities where there are such, between unknown keys that
  // read as zeros and as initial values.
  double largest = 0, mean = 0;
};

// Invariant: the model computes with the checkpoint's weights, on the CPU.
class ExportModel {
 public:
  // Reads the checkpoint once, with the memory of ExportRows.
  static Result<std::unique_ptr<ExportModel>> Read(const ExportTask& task);

  const ExportRows& rows() const { return *rows_; }
  const std::vector<DenseTensor>& tensors() const { return model_->tensors(); }
  // Returns the weights of a dense tensor in its own shape, [tensor.size()].
  std::span<const float> WeightsOf(const DenseTensor& tensor) const;
  const CheckRows& check() const { return check_; }
  const UnknownInSample& unknown() const { return unknown_; }
  // Tells the operator the rows and bytes of each table, and what unknown() found.
  void Describe(const ExportTask& task) const;

 private:
  explicit ExportModel(const Job& job) : wanted_(job) {}
  // Scores a batch of the sample in both ways, and keeps the scores to check with.
  Status Score(const ExportTask& task, const StepParts& batch);
  void CountUnknown(const ExportTask& task, const StepParts& batch);

  std::unique_ptr<Model> model_;
  WantedRows wanted_;
  std::unique_ptr<ExportRows> rows_;
  std::vector<float> dense_;
  CheckRows check_;
  UnknownInSample unknown_;
};

}  // namespace hdps
