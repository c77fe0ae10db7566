// Reads the lines of several files, one file after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/compressed_file.h"

namespace hdps {

class ColumnTable;
class FollowedLog;
class HoldOut;
class RecordFiles;

// A file with a longer line is taken for one that is no text.
inline constexpr size_t kLineBytesMax = size_t{16} << 20;

// Place of a line.
struct LinePlace {
  uint32_t file = 0;    // Index into the paths.
  uint64_t number = 0;  // From 1, as editors count.
};

struct Line {
  std::string_view text;  // Without its end, LF or CR LF.
  LinePlace place;
  uint64_t row = 0;  // Number in the stream, without shuffling.
};

// Selects rows of a file: those of an epoch, or those held out from all epochs.
enum class RowSide : uint8_t { kAll, kTrained, kHeldOut };

// Tells which lines may be rows.
struct LineRules {
  // If not 0, the files are images (idx_file.h), and each line is one image with its label: this
  // many bytes of any value.
  size_t image_bytes = 0;
  std::vector<uint32_t> image_shape = {};  // As in DataSpec.
  bool labels_read = true;                 // For images: if false, their labels may be missing.
  // Not null: the table stands for the file, and each line is the number of a row (table_files.h).
  std::shared_ptr<const ColumnTable> table = nullptr;
  // Not null: rows are records, and each line has the cells of one.
  std::shared_ptr<RecordFiles> records = nullptr;
  // Not null: the files are those of a log that is followed, and the reader waits for more.
  std::shared_ptr<FollowedLog> log = nullptr;
  bool whole_lines = false;  // A last line without its end is still being written, and is skipped.
  bool header = false;       // The first line of each file is skipped.
  std::string comment;       // Lines that begin with this are skipped; empty: none.
  // Rows of the other side are skipped. `hold_out` decides; copies of the rules share it, because
  // it learns from headers.
  RowSide side = RowSide::kAll;
  std::shared_ptr<HoldOut> hold_out = nullptr;  // Set unless `side` is kAll.

  // Returns the bytes of each line if they all have as many; 0: they end with LF or have a length.
  size_t line_bytes() const;
  // Returns the row's text in a line as it stands in its file, without the LF; nothing if it is no
  // row. Requires: the header of its file, if any, was taken.
  std::optional<std::string_view> RowOf(std::string_view raw, const LinePlace& place) const;
};

// Returns the text of a first line without byte order mark and line end.
std::string_view HeaderText(std::string_view raw);

// Is called with the header of each file, as from HeaderText, before any row of that file.
using TakeHeader = std::function<Status(uint32_t file, std::string_view text)>;

// Returns every line that may be a row by the rules: headers, blank lines, comments and rows of the
// other side are skipped.
// Invariant: memory is bounded by the buffer and the longest line.
class LineReader {
 public:
  LineReader(FileSystem& files, std::vector<std::string> paths, LineRules rules,
             TakeHeader take_header = {});

  // Goes back to the first line of the first file.
  Status Start();
  // Returns the next line, valid until the next call. False at the end of the last file.
  Result<bool> Next(Line* line);

  // Offsets of the last line's begin and of the line after it, in the unpacked file.
  uint64_t line_offset() const { return line_offset_; }
  uint64_t next_offset() const { return buffer_offset_ + begin_; }
  // Is true if the file of the last line can be read at any of these offsets.
  bool seekable() const { return file_ && file_->seekable(); }

  // The files; of a followed log, those that were there at the last line.
  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& path(uint32_t file) const { return paths_[file]; }
  uint64_t bytes_read() const { return bytes_read_; }  // Unpacked bytes since construction.
  double progress() const;                             // Share of the bytes of all files on disk.

 private:
  Status OpenFile(size_t file);
  Status OpenNextOfLog();
  std::string PlaceOfLast() const;
  Status OnHeader(uint32_t file, std::string_view raw);
  // Returns the next line as it stands in the file; false at the end of the file.
  Result<bool> NextRaw(std::string_view* text);
  Result<bool> NextRecord(std::string_view* text);
  Status TooLong() const;
  Status ReadMore();

  FileSystem& files_;
  std::vector<std::string> paths_;
  const LineRules rules_;
  const TakeHeader take_header_;
  uint64_t all_packed_bytes_ = 0;

  std::unique_ptr<UnpackedFile> file_;  // Null before the first file and after the last.
  size_t file_index_ = 0;
  uint64_t line_number_ = 0;
  uint64_t rows_ = 0;                 // Rows given since Start().
  uint64_t packed_bytes_before_ = 0;  // Bytes of the files before this one.
  std::string place_before_;          // Place of the last line of a log before this file.
  size_t buffer_bytes_;
  // Not initialized, because a short file uses little of it.
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0, end_ = 0;  // [begin_, end_) of buffer_ are read and not yet returned.
  size_t searched_ = 0;         // No line ends in [begin_, searched_).
  bool file_ended_ = true;
  uint64_t bytes_read_ = 0;
  // Offsets in the file: of buffer_, of the last line.
  uint64_t buffer_offset_ = 0, line_offset_ = 0;
};

}  // namespace hdps
