// The choice of the rows of the training data that are held out from all epochs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/row.h"

namespace hdps {

struct DataSpec;

// A hash of the job's seed and of all bytes of a row but its labels decides, so rows that say the
// same of an example are on one side, whatever their labels are and wherever they stand.
//
// Invariant: what is held out is a function of the row, of the place of the labels in its file, of
// the seed and of the share.
class HoldOut {
 public:
  HoldOut(const DataSpec& data, uint64_t seed);

  // The first line of a file whose header names its columns, before any row of it is asked for. One
  // that does not fit the job is left to whoever reads the rows.
  void TakeHeader(uint32_t file, std::string_view text);
  bool Has(uint32_t file, std::string_view row) const;
  // The same for rows that are equal but for their labels.
  uint64_t HashOf(uint32_t file, std::string_view row) const;

 private:
  // What a label is in a line.
  enum class LabelIs : uint8_t { kCells, kFirstWord, kFirstByte };
  using Cells = std::vector<uint32_t>;  // Ascending, from 0.

  Cells LabelCells(const std::vector<uint32_t>& cell_of_column) const;
  uint64_t HashCells(const Cells& labels, std::string_view row) const;

  const uint64_t seed_;
  const double share_;
  const LabelIs label_is_;
  const char delimiter_;
  const std::optional<char> quote_;  // Around cells, in which delimiters are text.
  const std::vector<ColumnSpec> columns_;
  const std::unique_ptr<RowParser> header_parser_;  // Of csv.
  Cells labels_;                                    // Of files in the job's order.
  std::vector<Cells> labels_by_header_;             // [files], of those whose header was taken.
};

}  // namespace hdps
