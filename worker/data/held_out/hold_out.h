// Chooses the rows of the training data that are held out from all epochs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "worker/data/columnar/table_lines.h"
#include "worker/data/row.h"

namespace hdps {

class CellLineWriter;
class RecordCells;
struct ColumnSpec;
struct DataSpec;
struct LinePlace;

// Chooses by a hash of the job's seed and of all bytes of a row except its labels. So rows that
// differ only in their labels are on the same side, wherever they stand. With
// data.validation_block_lines it hashes the number of the row's block of lines instead.
//
// A row of a table is hashed as the line that TableLines writes of it. A record has no bytes that
// stand for it: HashOfCells() hashes the values of the job's columns.
//
// Invariant: the choice is a function of the row, of the place of the labels in its file, of the
// seed, and of the share; with blocks, of the row's place, of the seed, and of the share.
class HoldOut {
 public:
  HoldOut(const DataSpec& data, uint64_t seed);
  ~HoldOut();

  // Takes the header of a file, before any of its rows is asked for. A header that does not fit the
  // job is ignored; the reader of the rows reports it.
  void TakeHeader(uint32_t file, std::string_view text);
  bool Has(const LinePlace& place, std::string_view row) const;
  // Returns the hash of a row; equal for rows that differ only in their labels.
  uint64_t HashOf(uint32_t file, std::string_view row) const;

 private:
  // The form of a label in a line.
  enum class LabelIs : uint8_t { kCells, kFirstWord, kFirstByte, kRecordCells };

  void TakeTable(const DataSpec& data);
  using Cells = std::vector<uint32_t>;  // Indices of cells, ascending.

  static Cells RecordLabels(const DataSpec& data);
  Cells LabelCells(const std::vector<uint32_t>& cell_of_column) const;
  uint64_t HashCells(const Cells& labels, std::string_view row) const;
  uint64_t HashOfRecord(std::string_view row) const;

  const uint64_t seed_;
  const double share_;
  const uint64_t block_lines_;  // 0: rows are chosen one by one.
  const LabelIs label_is_;
  const char delimiter_;
  const std::optional<char> quote_;  // Quote around cells, in which delimiters are text.
  const std::vector<ColumnSpec> columns_;
  const std::unique_ptr<RowParser> header_parser_;  // Null except for csv.
  std::unique_ptr<const TableLines> table_;         // Null: the rows are lines of files.
  std::unique_ptr<RecordCells> record_cells_;       // Null: records are lines of cells.
  std::unique_ptr<CellLineWriter> record_line_;     // Of the record that is hashed.
  Cells labels_;                         // Cells of files in the job's order, or of the table.
  std::vector<Cells> labels_by_header_;  // [files] whose header was taken.
};

}  // namespace hdps
