// From a line to a row of a batch, or to a bad row that is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/data/formats/absent_cells.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {

class ItemPool;

// Where in the stream a row is.
struct RowPlace {
  uint32_t epoch = 0;
  uint64_t position = 0;  // In the epoch.
  uint32_t number = 0;    // Among the rows of this worker in the step.
};

// Invariant: bad_rows() counts since the last Restart().
class RowAdder {
 public:
  // `paths` are the files that lines come from. kInvalidArgument where the job's columns do not
  // fit together. With `items`, which have been collected when rows are added, examples with label
  // 0 are made of those with label 1.
  static Result<std::unique_ptr<RowAdder>> Make(const DataSpec& data,
                                                std::vector<std::string> paths,
                                                const std::vector<LabelSpec>& labels,
                                                std::shared_ptr<ItemPool> items = nullptr,
                                                BadRows bad_rows = BadRows::kCounted);

  void Restart(uint64_t bad_rows = 0) { bad_rows_ = bad_rows; }
  uint64_t bad_rows() const { return bad_rows_; }
  BatchBuilder NewBatch(size_t rows_max) const {
    return BatchBuilder(shape_, static_cast<uint32_t>(rows_max));
  }
  // kInvalidArgument, with the place, for one bad row too many, and for a file of which it cannot
  // be told what its cells are.
  Status Add(const Line& line, const RowPlace& place, BatchBuilder* builder);
  // Adds the row of the line, if it is one; a bad row is not counted. Requires: labels are read and
  // no examples are made.
  bool AddIfRow(const Line& line, uint32_t number, BatchBuilder* builder);
  // Takes the headers that `other`, which has the same files, has taken.
  void UseHeadersOf(const RowAdder& other) { orders_ = other.orders_; }
  // Adds the row of the line; or says, with the place, why it is none, and counts nothing.
  std::optional<std::string> AddOrDescribe(const Line& line, BatchBuilder* builder);
  // Of a file with a header: in which order its cells stand. The names that the job does not have
  // are appended to `passed_over`, where that is not null. Formats other than csv have one order.
  Status TakeHeader(uint32_t file, std::string_view text,
                    std::vector<std::string>* passed_over = nullptr);
  // What stands in the line, by the names of the job.
  std::vector<NamedText> Values(const Line& line) {
    UseOrderOf(line);
    return parser_->Values(line.text);
  }

 private:
  RowAdder() = default;
  void UseOrderOf(const Line& line) {
    if (!orders_.empty()) parser_->UseOrder(orders_[line.place.file].get());
  }
  std::optional<RowError> TryAdd(const Line& line, const RowPlace& place, BatchBuilder* builder);
  void AddNegatives(const RowPlace& place, BatchBuilder* builder);
  void AddStandIn(const RowPlace& place, BatchBuilder* builder) const;
  Status RefuseRowAsHeader(uint32_t file, std::string_view text);
  std::string Describe(const Line& line, const RowError& error) const;
  RowError DoesNotFit() const;

  std::vector<std::string> paths_;
  std::vector<ColumnSpec> columns_;  // Of a csv job.
  bool labels_read_ = true;
  BadRows bad_rows_become_ = BadRows::kCounted;
  std::unique_ptr<AbsentCells> absent_;  // Null: no cell may lack, or the headers tell.
  // [paths], or empty as long as all are in the job's order; null: this one is. Files of one order
  // share it.
  std::vector<std::shared_ptr<const CellOrder>> orders_;
  uint64_t max_bad_rows_ = 0;
  std::unique_ptr<RowParser> parser_;
  std::unique_ptr<DerivedFeatures> derived_;
  NumericTransforms transforms_{{}};
  std::vector<std::string> numeric_names_;
  BatchShape shape_;
  std::shared_ptr<ItemPool> items_;  // Null: nothing is made.

  uint64_t bad_rows_ = 0;
  Row row_;
  Row parsed_;  // As it was before anything was derived; where examples are made of it.
  std::vector<float> numeric_;
};

}  // namespace hdps
