// Lets a table of this process stand for the files of a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/compressed_file.h"

namespace hdps {

struct DataSpec;

// Returns the table that `paths` name instead of files; null if they name files.
std::shared_ptr<const ColumnTable> TableOf(const DataSpec& data,
                                           const std::vector<std::string>& paths);
// kInvalidArgument if a table stands beside other paths, or the job's format has no named columns.
Status CheckTable(const DataSpec& data, const std::vector<std::string>& paths);
// Returns the bytes of a file, or of the lines of a table.
Result<uint64_t> DataBytes(FileSystem& files, const DataSpec& data, const std::string& path);
// "memory:train row 17": the first row of a table is 0.
std::string TableRowPlace(const std::string& path, uint64_t row);

// A line of a table is the number of its row in 8 bytes, so that lines are shuffled, split, held
// out and counted as those of files are, and their cells stay where they are.
inline constexpr size_t kRowNumberBytes = sizeof(uint64_t);

// Returns the number with which the line of a row or a packed row (packed_rows.h) begins; nothing
// for a shorter line.
inline std::optional<uint64_t> RowNumberOf(std::string_view line) {
  if (line.size() < kRowNumberBytes) return std::nullopt;
  uint64_t row = 0;
  std::memcpy(&row, line.data(), kRowNumberBytes);
  return row;
}
// The line is valid as long as `row`.
inline std::string_view LineOfRow(const uint64_t& row) {
  return {reinterpret_cast<const char*>(&row), kRowNumberBytes};
}

// Gives the lines of all rows.
std::unique_ptr<UnpackedFile> OpenRowNumbers(uint64_t num_rows);

}  // namespace hdps
