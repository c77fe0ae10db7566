// Exports a checkpoint as an ONNX model: its dense part, and its rows as long as they are not too
// many.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/byte_count.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/process/terminal.h"
#include "scheduler/report/run_summary.h"
#include "tools/export/check_rows.h"
#include "tools/export/export.h"
#include "tools/export/export_model.h"
#include "tools/export/key_rule.h"
#include "tools/export/onnx/onnx_model.h"

namespace hdps {
namespace {

Status CheckRowCount(const ExportTask& task, const ExportModel& model) {
  uint64_t rows = 0;
  for (uint32_t t = 0; t < task.job.tables.size(); ++t) {
    if (!task.job.tables[t].dense) rows += model.rows().num_rows({t});
  }
  if (rows <= task.request.max_rows) return {};
  const std::string limit = std::to_string(task.request.max_rows), all = std::to_string(rows);
  return {Code::kInvalidArgument, "--max_rows=" + limit + ": the tables have " + all +
                                      " rows together; expected --max_rows=" + all +
                                      " at least, or --tables=outside"};
}

Result<std::vector<OnnxRows>> RowsOf(const ExportTask& task, const ExportModel& model) {
  std::vector<OnnxRows> rows(task.job.tables.size());
  for (uint32_t t = 0; t < rows.size(); ++t) {
    if (task.job.tables[t].dense) continue;
    const uint64_t num_rows = model.rows().num_rows({t}), dim = task.job.tables[t].dim;
    rows[t].keys.reserve(num_rows);
    rows[t].weights.reserve((1 + num_rows) * dim);
    rows[t].weights.resize(dim);
    const auto take = [&](std::span<const Key> keys, std::span<const float> weights) {
      rows[t].keys.insert(rows[t].keys.end(), keys.begin(), keys.end());
      rows[t].weights.insert(rows[t].weights.end(), weights.begin(), weights.end());
      return Status();
    };
    HDPS_RETURN_IF_ERROR(model.rows().VisitRows({t}, take));
  }
  return rows;
}

std::vector<std::vector<OnnxTensor>> TensorsOf(const Job& job, const ExportModel& model) {
  std::vector<std::vector<OnnxTensor>> tensors(job.model.layers.size());
  for (const DenseTensor& tensor : model.tensors()) {
    tensors[tensor.layer].push_back({"layers/" + tensor.name,
                                     {tensor.shape.begin(), tensor.shape.end()},
                                     model.WeightsOf(tensor)});
  }
  return tensors;
}

// The same words as in the header of a safetensors file, and the columns of the input `numeric`.
void Describe(const ExportTask& task, const ExportModel& model, OnnxGraph& graph) {
  graph.Describe("format", "hdps");
  graph.Describe("version", "1");
  graph.Describe("job", PrintJob(task.job));
  graph.Describe("step", std::to_string(task.found.manifest.clock));
  graph.Describe("digest", DigestText(model.rows().digest().sum));
  graph.Describe("keys", DescribeKeys(task.job));
  const nlohmann::json columns = FeaturesOf(task.job.data).numeric;
  graph.Describe("numeric", columns.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

Status ExportOnnx(ExportTask& task) {
  if (task.request.weights != DType::kFp32) {
    return {Code::kInvalidArgument,
            "--weights: an ONNX model computes in 32 bits; expected f32 with --format=onnx"};
  }
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ExportModel> model, ExportModel::Read(task));
  const bool inside = task.request.tables_inside;
  std::vector<OnnxRows> rows;
  if (inside) {
    HDPS_RETURN_IF_ERROR(CheckRowCount(task, *model));
    HDPS_ASSIGN_OR_RETURN(rows, RowsOf(task, *model));
  }
  OnnxGraph graph(task.job.name);
  Describe(task, *model, graph);
  HDPS_RETURN_IF_ERROR(
      BuildOnnxModel(task.job, TensorsOf(task.job, *model), inside ? &rows : nullptr, graph));
  rows.clear();
  HDPS_RETURN_IF_ERROR(graph.Check());
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes,
                        graph.Write(task.files, task.folder, task.request.shard_bytes));
  HDPS_RETURN_IF_ERROR(WriteCheckRows(task, model->check()));
  model->Describe(task);
  if (task.job.model.precision == Precision::kBf16) {
    PrintError(
        "warning: model.precision is bf16 here, and the exported model multiplies in 32 "
        "bits: their outputs differ by the rounding\n");
  }
  task.to << "model.onnx: " << graph.num_nodes() << " nodes, " << ShowByteCount(bytes)
          << ", tables " << (inside ? "inside" : "outside") << "; checked by ONNX's checker\n";
  return {};
}

}  // namespace hdps
