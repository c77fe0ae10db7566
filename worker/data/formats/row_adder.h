// From a line to a row of a batch, or to a bad row that is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/job/job.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {

// Invariant: bad_rows() counts since the last Restart(); more than data.max_bad_rows are an error.
class RowAdder {
 public:
  // `paths` are the files that lines come from. kInvalidArgument where the job's columns do not
  // fit together.
  static Result<std::unique_ptr<RowAdder>> Make(const DataSpec& data,
                                                std::vector<std::string> paths,
                                                uint32_t num_classes);

  void Restart(uint64_t bad_rows = 0) { bad_rows_ = bad_rows; }
  uint64_t bad_rows() const { return bad_rows_; }
  BatchBuilder NewBatch(size_t rows_max) const {
    return BatchBuilder(transforms_.size(), num_sparse_, rows_max);
  }
  // kInvalidArgument, with the place, for one bad row too many.
  Status Add(const Line& line, BatchBuilder* builder);
  // Adds the row of the line; or says, with the place, why it is none, and counts nothing.
  std::optional<std::string> AddOrDescribe(const Line& line, BatchBuilder* builder);
  std::vector<NamedText> Values(std::string_view line) { return parser_->Values(line); }

 private:
  RowAdder() = default;
  std::optional<RowError> TryAdd(const Line& line, BatchBuilder* builder);
  std::string Describe(const Line& line, const RowError& error) const;
  RowError DoesNotFit() const;

  std::vector<std::string> paths_;
  uint64_t max_bad_rows_ = 0;
  std::unique_ptr<RowParser> parser_;
  std::unique_ptr<DerivedFeatures> derived_;
  NumericTransforms transforms_{{}};
  std::vector<std::string> numeric_names_;
  size_t num_sparse_ = 0;

  uint64_t bad_rows_ = 0;
  Row row_;
  std::vector<float> numeric_;
};

}  // namespace hdps
