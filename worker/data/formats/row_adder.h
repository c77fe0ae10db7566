// Adds the row of a line to a batch, or counts it as bad.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_facts.h"
#include "worker/data/cache/cached_row.h"
#include "worker/data/formats/absent_cells.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {

class ItemPool;
struct ColumnSpec;

// Position of a row in the stream.
struct RowPlace {
  uint32_t epoch = 0;
  uint64_t position = 0;  // Position in the epoch.
  uint32_t number = 0;    // Index among this worker's rows in the step.
};

// Parses lines, derives and transforms their values, and adds them to batches.
//
// Invariant: bad_rows() counts since the last Restart().
class RowAdder {
 public:
  // `paths` are the files of the lines. kInvalidArgument if the job's columns do not fit together.
  // With `items`, which must be collected before rows are added, examples with label 0 are made
  // from those with label 1.
  static Result<std::unique_ptr<RowAdder>> Make(const DataSpec& data,
                                                std::vector<std::string> paths,
                                                const std::vector<LabelSpec>& labels,
                                                std::shared_ptr<ItemPool> items = nullptr,
                                                BadRows bad_rows = BadRows::kCounted);

  ~RowAdder();

  // Takes the files of lines that come now, in place of those of Make(); later ones are added
  // behind them.
  void KnowPaths(const std::vector<std::string>& paths) {
    if (paths.size() != paths_.size() || (!paths.empty() && paths_[0] != paths[0])) paths_ = paths;
  }
  // As RowParser::UseTable().
  void UseTable(std::shared_ptr<const ColumnTable> table) { parser_->UseTable(std::move(table)); }
  // Lets messages name the place of a line as the row of a table, from 0 on, of which it is a cell.
  void NameRowsOfTable() { of_table_ = true; }
  void Restart(uint64_t bad_rows = 0) { bad_rows_ = bad_rows; }
  uint64_t bad_rows() const { return bad_rows_; }
  BatchBuilder NewBatch(size_t rows_max) const {
    return BatchBuilder(shape_, static_cast<uint32_t>(rows_max));
  }
  // Adds the row of the line. kInvalidArgument, with the place, for one bad row too many, and for a
  // file whose cells cannot be determined.
  Status Add(const Line& line, const RowPlace& place, BatchBuilder* builder);
  // Adds the row of the line and returns true, or returns false for a bad row without counting it.
  // Requires: labels are read and no examples are made.
  bool AddIfRow(const Line& line, uint32_t number, BatchBuilder* builder);
  // Takes over the headers that `other` has read of the same files.
  void UseHeadersOf(const RowAdder& other) { orders_ = other.orders_; }
  // Adds the row of the line, or returns its place and why it is bad, without counting it.
  std::optional<std::string> AddOrDescribe(const Line& line, BatchBuilder* builder);
  // Packs each row that is parsed from here on into `run`, too; null: no more.
  void PackInto(CachedRun* run) { run_ = run; }
  // Parses the line for PackInto() alone.
  void Pack(const Line& line) { static_cast<void>(TryAdd(line, {}, nullptr)); }
  // Adds a row that was packed, as Add() did with its line. `bytes` begin with the row, and must
  // stay until the batch is finished. False: they are damaged.
  Result<bool> AddPacked(std::span<const std::byte> bytes, const RowPlace& place,
                         BatchBuilder* builder);
  // Takes the cell order from the header of a file. Appends names that the job does not use to
  // `passed_over`, if not null. Formats other than csv have one order.
  Status TakeHeader(uint32_t file, std::string_view text,
                    std::vector<std::string>* passed_over = nullptr);
  // As RowParser::Hold().
  std::string_view Hold(std::string_view line) { return parser_->Hold(line); }
  // Returns the values in the line, with the names of the job.
  std::vector<NamedText> Values(const Line& line) {
    UseOrderOf(line);
    return parser_->Values(line.text);
  }

 private:
  RowAdder();
  const std::vector<float>& kept() const { return kept_columns_.empty() ? numeric_ : kept_; }
  void UseOrderOf(const Line& line) {
    if (!orders_.empty()) parser_->UseOrder(orders_[line.place.file].get());
  }
  std::optional<RowError> TryAdd(const Line& line, const RowPlace& place, BatchBuilder* builder);
  // Adds row_, and the examples that are made of it.
  void AddRow(const RowPlace& place, BatchBuilder* builder);
  Status CountBad(const std::string& what, const RowPlace& place, BatchBuilder* builder);
  void EndPacked(const Line& line, const std::optional<RowError>& error);
  bool LabelsFit(const RowInPlace& row) const;
  void KeepNumbers();
  void AddNegatives(const RowPlace& place, BatchBuilder* builder);
  void AddStandIn(const RowPlace& place, BatchBuilder* builder) const;
  Status RefuseRowAsHeader(uint32_t file, std::string_view text);
  std::string Describe(const Line& line, const RowError& error) const;
  RowError DoesNotFit() const;

  std::vector<std::string> paths_;
  std::vector<ColumnSpec> columns_;  // Columns of a csv job.
  bool of_table_ = false;            // Lines are rows of a table, or its cells.
  bool of_records_ = false;          // Lines have no characters that a place could count.
  bool labels_read_ = true;
  BadRows bad_rows_become_ = BadRows::kCounted;
  std::unique_ptr<AbsentCells> absent_;  // Null if no cells can be absent, or headers name them.
  // [paths]; empty while all files have the job's order; null: this one has. Files with equal
  // orders share one.
  std::vector<std::shared_ptr<const CellOrder>> orders_;
  uint64_t max_bad_rows_ = 0;
  std::unique_ptr<RowParser> parser_;
  std::unique_ptr<DerivedFeatures> derived_;
  NumericTransforms transforms_{{}};
  std::vector<std::string> numeric_names_;
  BatchShape shape_;
  std::shared_ptr<ItemPool> items_;  // Null: no examples are made.

  std::vector<LabelSpec> labels_;
  CachedShape packed_shape_;
  CachedRun* run_ = nullptr;

  uint64_t bad_rows_ = 0;
  Row row_;
  bool makes_ = false;          // Examples are made of the row.
  Row parsed_;                  // The row before features are derived, for making examples of it.
  std::vector<float> numeric_;  // All numbers of the row, after their transforms.
  std::vector<uint32_t> kept_columns_;  // As in DataSpec::kept_numbers.
  std::vector<float> kept_;             // The numbers of kept_columns_.
};

}  // namespace hdps
