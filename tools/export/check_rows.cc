// Lays the lists of a batch out as matrices that grow with their widest row.
#include "tools/export/check_rows.h"

#include <algorithm>

#include "common/job/job_facts.h"
#include "tools/export/safetensors_writer.h"

namespace hdps {
namespace {

// Makes [rows, from] to [rows, to] with zeros behind each row.
template <typename T>
void Widen(uint32_t rows, uint32_t from, uint32_t to, std::vector<T>* matrix) {
  std::vector<T> wide(size_t{rows} * to);
  for (uint32_t row = 0; row < rows; ++row) {
    std::copy_n(matrix->begin() + size_t{row} * from, from, wide.begin() + size_t{row} * to);
  }
  *matrix = std::move(wide);
}

void AddColumn(const SparseColumn& column, uint32_t before, uint32_t more, CheckFeature* feature) {
  uint32_t width = std::max(1u, feature->width);
  for (uint32_t row = 0; row < more; ++row) {
    width = std::max(width, column.offsets[row + 1] - column.offsets[row]);
  }
  Widen(before, feature->width, width, &feature->keys);
  Widen(before, feature->width, width, &feature->weights);
  feature->width = width;
  feature->keys.resize(size_t{before + more} * width);
  feature->weights.resize(size_t{before + more} * width);
  for (uint32_t row = 0; row < more; ++row) {
    size_t at = size_t{before + row} * width;
    for (uint32_t k = column.offsets[row]; k < column.offsets[row + 1]; ++k, ++at) {
      feature->keys[at] = column.keys[k];
      feature->weights[at] = column.weights.empty() ? 1.0f : column.weights[k];
    }
  }
}

}  // namespace

void AddCheckRows(const Job& job, const Batch& batch, std::span<const float> scores,
                  CheckRows* check) {
  const uint32_t more = std::min(kCheckRows - check->rows, batch.num_examples);
  if (more == 0) return;
  if (check->features.empty()) {
    for (const std::string& name : FeaturesOf(job.data).sparse) {
      check->features.push_back({.name = name, .keys = {}, .weights = {}});
    }
  }
  for (size_t f = 0; f < check->features.size(); ++f) {
    AddColumn(batch.sparse[f], check->rows, more, &check->features[f]);
  }
  check->num_numeric = batch.num_numeric;
  check->numeric.insert(check->numeric.end(), batch.numeric.begin(),
                        batch.numeric.begin() + size_t{more} * batch.num_numeric);
  check->scores_a_row = static_cast<uint32_t>(scores.size() / batch.num_examples);
  check->scores.insert(check->scores.end(), scores.begin(),
                       scores.begin() + size_t{more} * check->scores_a_row);
  check->rows += more;
}

Status WriteCheckRows(const ExportTask& task, const CheckRows& check) {
  std::vector<SafeTensor> tensors;
  std::vector<std::span<const std::byte>> contents;
  for (const CheckFeature& feature : check.features) {
    tensors.push_back({feature.name, "I64", {check.rows, feature.width}});
    contents.push_back(std::as_bytes(std::span(feature.keys)));
  }
  for (const CheckFeature& feature : check.features) {
    tensors.push_back({feature.name + ".weight", "F32", {check.rows, feature.width}});
    contents.push_back(std::as_bytes(std::span(feature.weights)));
  }
  if (check.num_numeric > 0) {
    tensors.push_back({"numeric", "F32", {check.rows, check.num_numeric}});
    contents.push_back(std::as_bytes(std::span(check.numeric)));
  }
  tensors.push_back({"scores", "F32", {check.rows, check.scores_a_row}});
  contents.push_back(std::as_bytes(std::span(check.scores)));
  return WriteSafetensors(task.files, JoinPath(task.folder, kCheckFile), tensors, contents,
                          {{"values", check.drawn ? "drawn at random" : "of the data"}});
}

}  // namespace hdps
