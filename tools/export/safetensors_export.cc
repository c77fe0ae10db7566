// Exports tables and dense tensors as safetensors files: numbers of 64 bits first, then those of 32
// and of 16, so that each tensor is aligned to its numbers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/job/job_file.h"
#include "common/job/spec/table_spec.h"
#include "common/process/terminal.h"
#include "kernels/host/half_floats.h"
#include "scheduler/report/run_summary.h"
#include "tools/export/check_rows.h"
#include "tools/export/export.h"
#include "tools/export/export_model.h"
#include "tools/export/key_rule.h"
#include "tools/export/safetensors_writer.h"

namespace hdps {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

// A tensor and what appends its bytes to the file that it lies in.
struct Piece {
  SafeTensor tensor;
  std::function<Status(SafetensorsWriter&)> append;
};

std::string DTypeName(DType format) {
  return format == DType::kFp32 ? "F32" : format == DType::kFp16 ? "F16" : "BF16";
}

SafeMetadata MetadataOf(const ExportTask& task, const ExportModel& model) {
  return {{"format", "hdps"},
          {"version", "1"},
          {"job", PrintJob(task.job)},
          {"step", std::to_string(task.found.manifest.clock)},
          {"digest", DigestText(model.rows().digest().sum)},
          {"keys", DescribeKeys(task.job)}};
}

// Writes the pieces of one export.
class Pieces {
 public:
  Pieces(const ExportTask& task, const ExportModel& model) : task_(task), model_(model) {
    for (uint32_t t = 0; t < task.job.tables.size(); ++t) {
      if (!task.job.tables[t].dense) AddKeys({t});
    }
    for (const DenseTensor& tensor : model.tensors()) AddDense(tensor);
    for (uint32_t t = 0; t < task.job.tables.size(); ++t) {
      if (!task.job.tables[t].dense) AddWeights({t});
    }
    for (const Piece& piece : pieces_) bytes_ += piece.tensor.bytes();
  }

  // Writes one file, or several and their index.
  Status Write();

 private:
  void AddKeys(TableId table);
  void AddWeights(TableId table);
  void AddDense(const DenseTensor& tensor);
  Status AppendWeights(TableId table, SafetensorsWriter& to);
  Status Append(std::span<const std::byte> bytes, SafetensorsWriter& to);
  Status WriteFile(const std::string& name, std::span<const Piece> pieces);
  // Returns where each file's pieces end: a file is at most as long as asked for, or has one.
  std::vector<size_t> Ends() const;
  Status WriteIndex(const std::vector<size_t>& ends, const std::vector<std::string>& names) const;

  const ExportTask& task_;
  const ExportModel& model_;
  std::vector<Piece> pieces_;
  uint64_t bytes_ = 0, written_ = 0;
};

void Pieces::AddKeys(TableId table) {
  const TableSpec& spec = task_.job.tables[table.value];
  pieces_.push_back({{spec.name + ".keys", "I64", {model_.rows().num_rows(table)}},
                     [this, table](SafetensorsWriter& to) {
                       return model_.rows().VisitKeys(table, [&](std::span<const Key> keys) {
                         return Append(std::as_bytes(keys), to);
                       });
                     }});
}

void Pieces::AddDense(const DenseTensor& tensor) {
  pieces_.push_back(
      {{tensor.name, "F32", std::vector<uint64_t>(tensor.shape.begin(), tensor.shape.end())},
       [this, &tensor](SafetensorsWriter& to) {
         return Append(std::as_bytes(model_.WeightsOf(tensor)), to);
       }});
}

void Pieces::AddWeights(TableId table) {
  const TableSpec& spec = task_.job.tables[table.value];
  pieces_.push_back({{spec.name + ".weights",
                      DTypeName(task_.request.weights),
                      {model_.rows().num_rows(table), spec.dim}},
                     [this, table](SafetensorsWriter& to) { return AppendWeights(table, to); }});
}

Status Pieces::AppendWeights(TableId table, SafetensorsWriter& to) {
  const DType format = task_.request.weights;
  const float largest = format == DType::kFp16 ? 65504.0f : 3.3895314e38f;
  uint64_t cut = 0;
  std::vector<std::byte> narrow;
  const auto append = [&](std::span<const Key>, std::span<const float> weights) {
    if (format == DType::kFp32) return Append(std::as_bytes(weights), to);
    narrow.resize(weights.size() * FloatBytes(format));
    NarrowFloats(WidestVectors(), format, weights, narrow.data());
    cut += static_cast<uint64_t>(std::ranges::count_if(
        weights, [&](float w) { return std::isfinite(w) && std::fabs(w) > largest; }));
    return Append(narrow, to);
  };
  HDPS_RETURN_IF_ERROR(model_.rows().VisitRows(table, append));
  if (cut > 0) {
    PrintError(
        "warning: %llu weights of table %s are beyond what %s holds, and become its "
        "largest number\n",
        static_cast<unsigned long long>(cut),
        EscapeUntrusted(task_.job.tables[table.value].name).c_str(), DTypeName(format).c_str());
  }
  return {};
}

Status Pieces::Append(std::span<const std::byte> bytes, SafetensorsWriter& to) {
  written_ += bytes.size();
  task_.progress.Tell("written", written_, bytes_);
  return to.Append(bytes);
}

Status Pieces::WriteFile(const std::string& name, std::span<const Piece> pieces) {
  std::vector<SafeTensor> tensors;
  for (const Piece& piece : pieces) tensors.push_back(piece.tensor);
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                        SafetensorsWriter::Create(task_.files, JoinPath(task_.folder, name),
                                                  std::move(tensors), MetadataOf(task_, model_)));
  for (const Piece& piece : pieces) HDPS_RETURN_IF_ERROR(piece.append(*writer));
  return writer->Close();
}

std::vector<size_t> Pieces::Ends() const {
  std::vector<size_t> ends;
  uint64_t bytes = 0;
  for (size_t p = 0; p < pieces_.size(); ++p) {
    const uint64_t more = pieces_[p].tensor.bytes();
    if (bytes > 0 && bytes + more > task_.request.shard_bytes) {
      ends.push_back(p);
      bytes = 0;
    }
    bytes += more;
  }
  ends.push_back(pieces_.size());
  return ends;
}

Status Pieces::Write() {
  const std::vector<size_t> ends = Ends();
  if (ends.size() == 1) return WriteFile(kSingleFile, pieces_);
  std::vector<std::string> names;
  size_t begin = 0;
  for (size_t f = 0; f < ends.size(); ++f) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", f + 1, ends.size());
    names.emplace_back(name);
    HDPS_RETURN_IF_ERROR(WriteFile(name, std::span(pieces_).subspan(begin, ends[f] - begin)));
    begin = ends[f];
  }
  return WriteIndex(ends, names);
}

// Source of the form: huggingface/transformers, "Big models", sharded checkpoints.
Status Pieces::WriteIndex(const std::vector<size_t>& ends,
                          const std::vector<std::string>& names) const {
  nlohmann::ordered_json index = {{"metadata", {{"total_size", bytes_}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  size_t p = 0;
  for (size_t f = 0; f < ends.size(); ++f) {
    for (; p < ends[f]; ++p) index["weight_map"][pieces_[p].tensor.name] = names[f];
  }
  return WriteFileAtomically(
      task_.files, JoinPath(task_.folder, kIndexFile),
      index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace

Status ExportSafetensors(ExportTask& task) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ExportModel> model, ExportModel::Read(task));
  HDPS_RETURN_IF_ERROR(Pieces(task, *model).Write());
  HDPS_RETURN_IF_ERROR(WriteCheckRows(task, model->check()));
  model->Describe(task);
  return {};
}

}  // namespace hdps
