// Hashes the bytes of a row before and after its labels, or the number of its block.

#include <algorithm>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/formats/cell_scan.h"
#include "worker/data/header_check.h"
#include "worker/data/held_out/hold_out.h"
#include "worker/data/line_reader.h"
#include "worker/data/number.h"
#include "worker/data/records/cell_line.h"
#include "worker/data/records/record_cells.h"
#include "worker/data/records/record_columns.h"

namespace hdps {
namespace {

// Keeps the choice independent of the other uses of the job's seed.
constexpr uint64_t kHoldOutSalt = 0x76616c6964617465;

}  // namespace

HoldOut::~HoldOut() = default;

HoldOut::HoldOut(const DataSpec& data, uint64_t seed)
    : seed_(MixBits(seed ^ kHoldOutSalt)),
      share_(data.validation_share),
      block_lines_(data.validation_block_lines),
      label_is_(data.format == DataFormat::kIdx ? LabelIs::kFirstByte
                : HasTypedCells(data.format)    ? LabelIs::kRecordCells
                : data.format == DataFormat::kCsv || data.format == DataFormat::kCriteo
                    ? LabelIs::kCells
                    : LabelIs::kFirstWord),
      delimiter_(data.format == DataFormat::kCriteo ? '\t' : data.delimiter[0]),
      quote_(data.format == DataFormat::kCsv && !data.quote.empty() ? std::optional(data.quote[0])
                                                                    : std::nullopt),
      columns_(HasNamedColumns(data.format) ? data.columns : std::vector<ColumnSpec>()),
      header_parser_(data.format == DataFormat::kCsv && data.header
                         ? NewRowParser(data, {LabelSpec()})
                         : nullptr) {
  if (data.format == DataFormat::kCriteo) labels_ = {0};
  if (label_is_ == LabelIs::kRecordCells) {
    labels_ = RecordLabels(data);
    record_cells_ = NewRecordCells(data, /*labels_read=*/false);
    record_line_ = std::make_unique<CellLineWriter>();
  } else if (!columns_.empty()) {
    labels_ = LabelCells(OrderOf(columns_).cell_of_column);
  }
  TakeTable(data);
}

HoldOut::Cells HoldOut::RecordLabels(const DataSpec& data) {
  Cells labels;
  const std::vector<ColumnSpec> columns = RecordColumns(data);
  for (size_t cell = 0; cell < columns.size(); ++cell) {
    if (columns[cell].type == ColumnType::kLabel) labels.push_back(static_cast<uint32_t>(cell));
  }
  return labels;
}

// A table that does not fit the job is ignored, as a header is.
void HoldOut::TakeTable(const DataSpec& data) {
  std::shared_ptr<const ColumnTable> table = TableOf(data, data.train);
  if (table == nullptr || columns_.empty()) return;
  const Result<std::vector<uint32_t>> cells =
      FindColumns(table->columns(), columns_, "", /*labels_read=*/false);
  if (!cells.ok()) return;
  labels_ = LabelCells(*cells);
  table_ = std::make_unique<const TableLines>(data, std::move(table), *cells);
}

HoldOut::Cells HoldOut::LabelCells(const std::vector<uint32_t>& cell_of_column) const {
  Cells labels;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const bool there = cell_of_column[c] != CellOrder::kAbsent;
    if (columns_[c].type == ColumnType::kLabel && there) labels.push_back(cell_of_column[c]);
  }
  std::ranges::sort(labels);
  return labels;
}

void HoldOut::TakeHeader(uint32_t file, std::string_view text) {
  if (header_parser_ == nullptr) return;
  const Result<HeaderMatch> match =
      MatchHeader("", header_parser_->Values(text), columns_, /*labels_read=*/false);
  if (!match.ok()) return;
  labels_by_header_.resize(std::max<size_t>(labels_by_header_.size(), file + 1), labels_);
  labels_by_header_[file] = LabelCells(match->order.cell_of_column);
}

bool HoldOut::Has(const LinePlace& place, std::string_view row) const {
  constexpr int kBits = 53;  // Bits of a double's mantissa.
  // Lines are counted from 1.
  const uint64_t hash = block_lines_ == 0 ? HashOf(place.file, row)
                                          : CombineKeys(CombineKeys(seed_, place.file),
                                                        (place.number - 1) / block_lines_);
  return static_cast<double>(hash >> (64 - kBits)) <
         share_ * static_cast<double>(uint64_t{1} << kBits);
}

uint64_t HoldOut::HashOf(uint32_t file, std::string_view row) const {
  if (table_ != nullptr) return HashCells(labels_, table_->LineOf(RowNumberOf(row).value_or(0)));
  switch (label_is_) {
    case LabelIs::kFirstByte:
      row.remove_prefix(std::min<size_t>(1, row.size()));
      break;
    case LabelIs::kFirstWord:
      row = TrimBlanks(row);
      row.remove_prefix(std::min(row.find_first_of(" \t"), row.size()));
      row = TrimBlanks(row);
      break;
    case LabelIs::kRecordCells:
      return HashOfRecord(row);
    case LabelIs::kCells:
      return HashCells(file < labels_by_header_.size() ? labels_by_header_[file] : labels_, row);
  }
  return HashString(row, seed_);
}

uint64_t HoldOut::HashOfRecord(std::string_view row) const {
  if (record_cells_ == nullptr) return HashOfCells(row, labels_, seed_);
  record_line_->Clear();
  // Bad rows have no cells.
  if (record_cells_->Write(row, record_line_.get())) return HashString(row, seed_);
  return HashOfCells({record_line_->data(), record_line_->size()}, labels_, seed_);
}

uint64_t HoldOut::HashCells(const Cells& labels, std::string_view row) const {
  uint64_t hash = seed_;
  size_t begin = 0, at = 0;  // The first byte not hashed yet, and the current cell.
  uint32_t cell = 0;
  for (const uint32_t label : labels) {
    for (; cell < label && at <= row.size(); ++cell) {
      at = EndOfCell(row, at, delimiter_, quote_) + 1;
    }
    if (at > row.size()) break;
    hash = HashString(row.substr(begin, at - begin), hash);
    begin = at = EndOfCell(row, at, delimiter_, quote_) + 1;
    ++cell;
  }
  return HashString(row.substr(std::min(begin, row.size())), hash);
}

}  // namespace hdps
