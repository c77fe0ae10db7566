// What one pass over files finds of their rows: counts, values and numbers of every column.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/prepare/columns/cell_kinds.h"
#include "tools/prepare/data_layout.h"
#include "tools/prepare/sketches.h"

namespace hdps {

// Texts that files write for what is not there, beside the empty one.
inline constexpr std::string_view kMissingTexts[] = {"?",    "NA",   "N/A", "NaN",  "nan",  "null",
                                                     "NULL", "None", "\\N", "#N/A", "<NA>", "NaT"};
// What may stand between several values of a cell.
inline constexpr std::string_view kSeparators = "|;,/ ";

// The parts of a column's cells between one of the separators.
struct PartsProfile {
  explicit PartsProfile(size_t kept_max) : distinct(kept_max) {}
  uint64_t cells = 0;    // With the separator.
  uint64_t parts = 0;    // Of these cells.
  uint64_t numbers = 0;  // Of these parts: whole ones.
  DistinctValues distinct;
};

// Cells of a kind that a job does not read as a person does.
struct ForeignCells {
  uint64_t count = 0;
  std::string first, place;  // Of the first: its text, "file:line".
};

// One column; of formats of entries, one field.
struct ColumnProfile {
  ColumnProfile(std::string column, size_t kept) : name(std::move(column)), distinct(kept) {}

  std::string name;
  uint64_t cells = 0;                       // Looked at; of a field of entries: entries.
  uint64_t empty = 0;                       // Of these.
  std::map<std::string, uint64_t> missing;  // Of these: texts of kMissingTexts.
  std::string first_missing;                // "file:line" of the first of both.
  bool whole = true;                        // All numbers are.
  bool rising = true;                       // Each number is above the one before.
  Moments numbers;                          // Of all cells that are numbers.
  NumberSample sample;                      // Of them.
  DistinctValues distinct;                  // Of the cells that are not empty.
  FrequentValues frequent;                  // Likewise.
  std::map<char, PartsProfile> parts;       // By separator.
  uint64_t leading_zeros = 0;               // Of these numbers: 007.
  uint64_t beyond_exact = 0;                // Of these numbers: whole, and no double tells apart.
  std::map<CellKind, ForeignCells> foreign;

  uint64_t filled() const { return cells - empty; }
};

struct DataProfile {
  DataLayout layout;
  std::vector<std::string> files;
  uint64_t rows = 0;
  uint64_t ragged_rows = 0;    // csv: with another number of cells.
  std::string first_ragged;    // "file:line: 13 cells where there should be 15"
  uint64_t unpaired_rows = 0;  // Of these: a quote does not close, or text stands behind it.
  uint64_t header_rows = 0;    // The header again, below; no rows.
  std::vector<ColumnProfile> columns;  // Entries: label, then fields.
};

// `distinct_kept` values a column are counted exactly, fewer where there are very many columns.
struct ProfileOptions {
  size_t distinct_kept = 65536;
  std::optional<std::string> only;  // The name of the one column that is looked at.
};
Result<DataProfile> ProfileData(FileSystem& files, const DataLayout& layout,
                                const std::vector<std::string>& paths,
                                const ProfileOptions& options);

}  // namespace hdps
