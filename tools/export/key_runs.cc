// Merges with a heap of cursors, one a run, each of which reads a part of its run at a time.
#include "tools/export/key_runs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tools/export/read_bytes.h"

namespace hdps {
namespace {

constexpr size_t kVisitedRows = 4096;

}  // namespace

// The position of a merge in a run, with the rows from there on that have been read.
class KeyRuns::Cursor {
 public:
  Cursor(const Run& run, uint64_t block_rows) : run_(run), block_rows_(block_rows) {}

  bool at_end() const { return row_ == run_.rows; }
  Key key() const { return keys_[row_ - block_]; }
  const Run& run() const { return run_; }
  const float* weights() const { return weights_.data() + (row_ - block_) * run_.dim; }

  // Steps to the next row. `weights` is null if they are not wanted.
  Status Next(const std::string& path, SequentialFile& keys, SequentialFile* weights) {
    ++row_;
    return row_ - block_ < keys_.size() ? Status() : Read(path, keys, weights);
  }
  // Reads the rows from the position on.
  Status Read(const std::string& path, SequentialFile& keys, SequentialFile* weights) {
    block_ = row_;
    const uint64_t rows = std::min(block_rows_, run_.rows - row_);
    keys_.resize(rows);
    HDPS_RETURN_IF_ERROR(ReadBytes(keys, path, (run_.first_row + row_) * sizeof(Key),
                                   std::as_writable_bytes(std::span(keys_))));
    if (weights == nullptr) return {};
    weights_.resize(rows * run_.dim);
    return ReadBytes(*weights, path, (run_.first_float + row_ * run_.dim) * sizeof(float),
                     std::as_writable_bytes(std::span(weights_)));
  }

 private:
  Run run_;
  uint64_t block_rows_;
  uint64_t row_ = 0, block_ = 0;  // The position, and that of keys_[0].
  std::vector<Key> keys_;
  std::vector<float> weights_;
};

Status KeyRuns::BeginRun(uint32_t first_column, uint32_t dim) {
  if (keys_ == nullptr) {
    HDPS_ASSIGN_OR_RETURN(keys_, files_.Create(path_ + ".keys"));
    HDPS_ASSIGN_OR_RETURN(weights_, files_.Create(path_ + ".weights"));
  }
  Run run{.first_column = first_column, .dim = dim};
  if (!runs_.empty()) {
    run.first_row = runs_.back().first_row + runs_.back().rows;
    run.first_float = runs_.back().first_float + runs_.back().rows * runs_.back().dim;
  }
  runs_.push_back(run);
  return {};
}

Status KeyRuns::Append(std::span<const Key> keys, std::span<const float> rows,
                       uint32_t row_floats) {
  Run& run = runs_.back();
  packed_.resize(keys.size() * run.dim);
  for (size_t k = 0; k < keys.size(); ++k) {
    std::copy_n(rows.data() + k * row_floats, run.dim, packed_.data() + k * run.dim);
  }
  run.rows += keys.size();
  HDPS_RETURN_IF_ERROR(keys_->Append(std::as_bytes(keys)));
  return weights_->Append(std::as_bytes(std::span(packed_)));
}

Status KeyRuns::Finish() {
  if (runs_.empty()) return {};
  HDPS_RETURN_IF_ERROR(keys_->Close());
  HDPS_RETURN_IF_ERROR(weights_->Close());
  keys_ = nullptr;
  weights_ = nullptr;
  packed_ = {};
  for (const Run& run : runs_) num_rows_ += run.rows;
  const bool whole = std::ranges::all_of(runs_, [&](const Run& run) { return run.dim == dim_; });
  if (whole) return {};
  num_rows_ = 0;
  return VisitKeys([this](std::span<const Key> keys) {
    num_rows_ += keys.size();
    return Status();
  });
}

Status KeyRuns::VisitRows(const Visit& visit) const { return Merge(/*with_weights=*/true, visit); }

Status KeyRuns::VisitKeys(const VisitKey& visit) const {
  return Merge(/*with_weights=*/false,
               [&](std::span<const Key> keys, std::span<const float>) { return visit(keys); });
}

Status KeyRuns::Merge(bool with_weights, const Visit& visit) const {
  if (runs_.empty()) return {};
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SequentialFile> keys,
                        files_.OpenSequential(path_ + ".keys"));
  std::unique_ptr<SequentialFile> weights;
  if (with_weights) {
    HDPS_ASSIGN_OR_RETURN(weights, files_.OpenSequential(path_ + ".weights"));
  }
  const uint64_t row_bytes = sizeof(Key) + (with_weights ? dim_ * sizeof(float) : 0);
  const uint64_t block_rows =
      std::clamp<uint64_t>(kMergeBytes / (row_bytes * runs_.size()), 1, uint64_t{1} << 16);
  std::vector<Cursor> cursors;
  for (const Run& run : runs_) {
    if (run.rows == 0) continue;
    HDPS_RETURN_IF_ERROR(cursors.emplace_back(run, block_rows).Read(path_, *keys, weights.get()));
  }
  // A heap whose front is the cursor with the smallest key.
  const auto later = [&](size_t a, size_t b) { return cursors[a].key() > cursors[b].key(); };
  std::vector<size_t> heap(cursors.size());
  for (size_t c = 0; c < heap.size(); ++c) heap[c] = c;
  std::ranges::make_heap(heap, later);
  std::vector<Key> out;
  std::vector<float> rows;
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, later);
    Cursor& cursor = cursors[heap.back()];
    if (out.empty() || out.back() != cursor.key()) {
      if (out.size() == kVisitedRows) {
        HDPS_RETURN_IF_ERROR(visit(out, rows));
        out.clear();
        rows.clear();
      }
      out.push_back(cursor.key());
      if (with_weights) rows.resize(out.size() * dim_);
    }
    if (with_weights) {
      std::copy_n(cursor.weights(), cursor.run().dim,
                  &rows[(out.size() - 1) * dim_ + cursor.run().first_column]);
    }
    HDPS_RETURN_IF_ERROR(cursor.Next(path_, *keys, weights.get()));
    if (cursor.at_end()) {
      heap.pop_back();
    } else {
      std::ranges::push_heap(heap, later);
    }
  }
  return out.empty() ? Status() : visit(out, rows);
}

}  // namespace hdps
