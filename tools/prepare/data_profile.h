// Profiles data files in one pass: counts, values and numbers of every column.
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

// Texts that stand for a missing cell, besides the empty text.
inline constexpr std::string_view kMissingTexts[] = {"?",    "NA",   "N/A", "NaN",  "nan",  "null",
                                                     "NULL", "None", "\\N", "#N/A", "<NA>", "NaT"};
// Characters that may separate several values in a cell.
inline constexpr std::string_view kSeparators = "|;,/ ";

// Profile of a column's cells split at one separator.
struct PartsProfile {
  explicit PartsProfile(size_t kept_max) : distinct(kept_max) {}
  uint64_t cells = 0;    // Cells with the separator.
  uint64_t parts = 0;    // Parts of these cells.
  uint64_t numbers = 0;  // Parts that are whole numbers.
  DistinctValues distinct;
};

// Counts cells of a kind that a person and a job read differently.
struct ForeignCells {
  uint64_t count = 0;
  std::string first, place;  // Text of the first such cell, and its place "file:line".
};

// Profile of one column, or of one field in formats of entries.
struct ColumnProfile {
  ColumnProfile(std::string column, size_t kept) : name(std::move(column)), distinct(kept) {}

  std::string name;
  // Cells of the column; entries, for a field.
  uint64_t cells = 0;
  uint64_t empty = 0;                       // Empty cells.
  std::map<std::string, uint64_t> missing;  // Counts of the cells with one of kMissingTexts.
  std::string first_missing;                // "file:line" of the first empty or missing cell.
  bool whole = true;                        // All numbers are whole.
  bool rising = true;                       // Each number is larger than the one before.
  Moments numbers;                          // All cells that are numbers.
  NumberSample sample;                      // Sample of these numbers.
  DistinctValues distinct;                  // Values of the cells that are not empty.
  FrequentValues frequent;                  // Most frequent of these values.
  std::map<char, PartsProfile> parts;       // Parts of the cells, by separator.
  uint64_t leading_zeros = 0;               // Numbers with leading zeros: 007.
  // Whole numbers too large to be told apart as doubles.
  uint64_t beyond_exact = 0;
  std::map<CellKind, ForeignCells> foreign;

  uint64_t filled() const { return cells - empty; }
};

struct DataProfile {
  DataLayout layout;
  std::vector<std::string> files;
  uint64_t rows = 0;
  uint64_t ragged_rows = 0;  // csv: rows with another number of cells.
  std::string first_ragged;  // "file:line: 13 cells where there should be 15"
  // Ragged rows in which a quote does not close, or has text behind it.
  uint64_t unpaired_rows = 0;
  uint64_t header_rows = 0;  // Repetitions of the header, not counted as rows.
  // Entries: the label, then the fields.
  std::vector<ColumnProfile> columns;
};

// Options of a profile. Up to `distinct_kept` values per column are counted exactly, or fewer if
// there are very many columns.
struct ProfileOptions {
  size_t distinct_kept = 65536;
  std::optional<std::string> only;  // Name of the only column to profile; not set: all.
};
Result<DataProfile> ProfileData(FileSystem& files, const DataLayout& layout,
                                const std::vector<std::string>& paths,
                                const ProfileOptions& options);

}  // namespace hdps
