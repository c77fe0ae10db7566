// Reads the sample first, because its keys say which rows have to stay in memory.
#include "tools/export/export_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/metrics/probability.h"
#include "embedding/table.h"
#include "worker/dense/dense_state.h"

namespace hdps {
namespace {

// Reads the initial values of a table's rows, whole ones.
class InitialRows {
 public:
  InitialRows(const Job& job, uint32_t table, uint32_t num_shards) {
    const TableSpec& spec = job.tables[table];
    const uint32_t slices = spec.row_slices();
    for (uint32_t s = 0; s < slices; ++s) {
      slices_.emplace_back(
          spec, TableId{table}, job.seed,
          RowPlacement{.shard = {s * (num_shards / slices)}, .num_shards = num_shards});
    }
  }
  void Read(Key key, std::span<float> row) {
    for (size_t s = 0; s < slices_.size(); ++s) {
      const uint32_t dim = slices_[s].dim();
      slices_[s].Read(std::span(&key, 1), dim, row.subspan(s * dim, dim));
    }
  }

 private:
  std::vector<TableSlice> slices_;
};

// Returns the largest and the sum of the differences of two lists of scores.
std::pair<double, double> Differences(const Job& job, std::span<const float> a,
                                      std::span<const float> b) {
  std::vector<bool> logits;
  for (const TaskSpec& task : TasksOf(job.model)) {
    logits.push_back(task.loss == LossKind::kLogloss);
  }
  double largest = 0, sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double left = static_cast<double>(a[i]), right = static_cast<double>(b[i]);
    if (logits[i % logits.size()]) {
      left = ProbabilityOf(left);
      right = ProbabilityOf(right);
    }
    largest = std::max(largest, std::fabs(left - right));
    sum += std::fabs(left - right);
  }
  return {largest, sum};
}

}  // namespace

Result<std::unique_ptr<ExportModel>> ExportModel::Read(const ExportTask& task) {
  std::unique_ptr<ExportModel> read(new ExportModel(task.job));
  Job job = task.job;
  job.model.device = "cpu";
  job.train.micro_batches = 1;
  HDPS_ASSIGN_OR_RETURN(read->model_, NewModel(job, task.executor));
  HDPS_ASSIGN_OR_RETURN(const SampleRows sample, ReadSample(task));
  const auto num_tables = static_cast<uint32_t>(job.tables.size());
  const std::vector<Key> dense_keys = DenseKeys(read->tensors());
  for (uint32_t t = 0; t < num_tables; ++t) {
    for (const StepParts& batch : sample.batches) read->wanted_.Want({t}, batch.KeysOf({t}));
    if (job.tables[t].dense) read->wanted_.Want({t}, dense_keys);
  }
  read->wanted_.Seal();
  HDPS_ASSIGN_OR_RETURN(read->rows_, ExportRows::Read(task, &read->wanted_));
  read->dense_.resize(read->model_->dense_floats());
  for (size_t k = 0; k < dense_keys.size(); ++k) {
    const std::span<float> chunk =
        std::span(read->dense_).subspan(k * kDenseChunkFloats, kDenseChunkFloats);
    read->wanted_.Read({num_tables - 1}, dense_keys[k], chunk);
  }
  if (!read->dense_.empty()) read->model_->SetDense(read->dense_);
  read->check_.drawn = sample.drawn;
  read->unknown_.table_keys.resize(num_tables);
  read->unknown_.table_unknown.resize(num_tables);
  for (const StepParts& batch : sample.batches) {
    HDPS_RETURN_IF_ERROR(read->Score(task, batch));
  }
  if (const size_t scores = read->unknown_.rows * read->check_.scores_a_row; scores > 0) {
    read->unknown_.mean /= static_cast<double>(scores);
  }
  return read;
}

std::span<const float> ExportModel::WeightsOf(const DenseTensor& tensor) const {
  return std::span(dense_).subspan(tensor.first_chunk * kDenseChunkFloats, tensor.size());
}

Status ExportModel::Score(const ExportTask& task, const StepParts& parts) {
  const Job& job = task.job;
  const Batch& batch = parts.parts()[0].batch;
  HDPS_RETURN_IF_ERROR(model_->CheckBatch(batch));
  std::vector<float> scores, initial_scores;
  std::vector<std::vector<float>> rows(job.tables.size());
  std::vector<TableInput> inputs(job.tables.size());
  bool all_known = true;
  for (const bool zeros : {true, false}) {
    for (uint32_t t = 0; t < job.tables.size(); ++t) {
      if (job.tables[t].dense) continue;
      const KeySet* const keys = parts.SetOf(0, {t});
      const uint32_t dim = job.tables[t].dim;
      InitialRows initial(job, t, task.found.manifest.num_shards);
      rows[t].resize(keys->unique.size() * dim);
      for (size_t k = 0; k < keys->unique.size(); ++k) {
        const std::span<float> row = std::span(rows[t]).subspan(k * dim, dim);
        if (wanted_.Read({t}, keys->unique[k], row)) continue;
        all_known = false;
        if (!zeros) initial.Read(keys->unique[k], row);
      }
      inputs[t].keys = keys;
      inputs[t].rows = rows[t];
    }
    if (zeros) {
      model_->Predict(batch, inputs, &scores);
    } else if (!all_known) {
      model_->Predict(batch, inputs, &initial_scores);
      const auto [largest, sum] = Differences(job, scores, initial_scores);
      unknown_.largest = std::max(unknown_.largest, largest);
      unknown_.mean += sum;
    }
  }
  AddCheckRows(job, batch, scores, &check_);
  CountUnknown(task, parts);
  return {};
}

void ExportModel::CountUnknown(const ExportTask& task, const StepParts& parts) {
  const Job& job = task.job;
  unknown_.rows += parts.parts()[0].batch.num_examples;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense) continue;
    const KeySet* const keys = parts.SetOf(0, {t});
    std::vector<float> row(job.tables[t].dim);
    std::vector<bool> there;
    for (const Key key : keys->unique) there.push_back(wanted_.Read({t}, key, row));
    for (const std::vector<uint32_t>& column : keys->row_index) {
      unknown_.keys += column.size();
      for (const uint32_t k : column) unknown_.unknown += there[k] ? 0 : 1;
    }
    unknown_.table_keys[t] = wanted_.num_keys({t});
    unknown_.table_unknown[t] = unknown_.table_keys[t] - wanted_.num_there({t});
  }
}

void ExportModel::Describe(const ExportTask& task) const {
  for (uint32_t t = 0; t < task.job.tables.size(); ++t) {
    const TableSpec& table = task.job.tables[t];
    if (table.dense) continue;
    const uint64_t rows = rows_->num_rows({t});
    task.to << "table " << EscapeUntrusted(table.name) << ": "
            << ShowWhole(static_cast<double>(rows)) << " rows of " << table.dim << " weights, "
            << ShowByteCount(rows * (sizeof(Key) + table.dim * FloatBytes(task.request.weights)))
            << "\n";
  }
  if (check_.drawn || unknown_.keys == 0) return;
  const double share =
      static_cast<double>(unknown_.unknown) / std::max(1.0, static_cast<double>(unknown_.keys));
  task.to << "keys without a row: " << unknown_.unknown << " of " << unknown_.keys << " ("
          << ShowNumber("%.2f", share * 100) << " %) in " << unknown_.rows
          << " rows of the data; they read as zeros there and as their initial values here, so "
             "predictions differ by at most "
          << ShowNumber("%.3g", unknown_.largest) << ", on average by "
          << ShowNumber("%.3g", unknown_.mean) << "\n";
  for (uint32_t t = 0; t < task.job.tables.size(); ++t) {
    if (unknown_.table_unknown[t] == 0) continue;
    task.to << "  of table " << EscapeUntrusted(task.job.tables[t].name) << ": "
            << unknown_.table_unknown[t] << " of " << unknown_.table_keys[t] << " different keys\n";
  }
}

}  // namespace hdps
