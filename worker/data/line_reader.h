// The lines of several files, one file behind the other.
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

class HoldOut;

// A longer line is taken for a file that is no text.
inline constexpr size_t kLineBytesMax = size_t{16} << 20;

// Where a line comes from.
struct LinePlace {
  uint32_t file = 0;    // Index into the paths.
  uint64_t number = 0;  // From 1, as editors count.
};

struct Line {
  std::string_view text;  // Without its end, LF or CR LF.
  LinePlace place;
};

// Which of the rows of a file: those of an epoch, or those that are held out from all of them.
enum class RowSide : uint8_t { kAll, kTrained, kHeldOut };

// Which lines may be rows.
struct LineRules {
  // Not 0: the files are images (idx_file.h), and a line is one of them, so many bytes with its
  // label, whatever they are.
  size_t image_bytes = 0;
  std::vector<uint32_t> image_shape = {};  // As DataSpec has it.
  bool labels_read = true;                 // Of images: otherwise their labels may be missing.
  bool header = false;                     // The first line of each file is passed over.
  std::string comment;  // Lines that begin with this are passed over; empty: none.
  // Rows of the other side are passed over, as `hold_out` decides, which copies of the rules share:
  // it learns from headers.
  RowSide side = RowSide::kAll;
  std::shared_ptr<HoldOut> hold_out = nullptr;  // Not null unless `side` is kAll.

  // Of a line as it lies in its file, without the LF: what of it is a row's text, or none. Requires
  // that the header of its file, if it has one, was taken.
  std::optional<std::string_view> RowOf(std::string_view raw, const LinePlace& place) const;
};

// The first line as text: without a byte order mark and the end of a line.
std::string_view HeaderText(std::string_view raw);

// Gets the header of each file, as HeaderText gives it, before any row of that file.
using TakeHeader = std::function<Status(uint32_t file, std::string_view text)>;

// Gives every line that may be a row by the rules: headers, blank lines, comments and rows of the
// other side are passed over.
// Invariant: memory is bounded by the buffer and the longest line.
class LineReader {
 public:
  LineReader(FileSystem& files, std::vector<std::string> paths, LineRules rules,
             TakeHeader take_header = {});

  // Back to the first line of the first file.
  Status Start();
  // The next line, valid until the next call. False at the end of the last file.
  Result<bool> Next(Line* line);

  // Where the last line begins in its file as it is unpacked, and behind its end.
  uint64_t line_offset() const { return line_offset_; }
  uint64_t next_offset() const { return buffer_offset_ + begin_; }
  // Whether the file of the last line can be read anywhere, at these offsets.
  bool seekable() const { return file_ && file_->seekable(); }

  const std::string& path(uint32_t file) const { return paths_[file]; }
  uint64_t bytes_read() const { return bytes_read_; }  // Unpacked, since it was made.
  double progress() const;                             // Part of all files' bytes, as they lie.

 private:
  Status OpenFile(size_t file);
  Status OnHeader(uint32_t file, std::string_view raw);
  // The next line as it lies in the file; false at the end of the file.
  Result<bool> NextRaw(std::string_view* text);
  Status TooLong() const;
  Status ReadMore();

  FileSystem& files_;
  const std::vector<std::string> paths_;
  const LineRules rules_;
  const TakeHeader take_header_;
  uint64_t all_packed_bytes_ = 0;

  std::unique_ptr<UnpackedFile> file_;  // None before the first and behind the last.
  size_t file_index_ = 0;
  uint64_t line_number_ = 0;
  uint64_t packed_bytes_before_ = 0;  // Of the files before this one.
  size_t buffer_bytes_;
  // Not filled beforehand: of a short file most is never touched.
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0, end_ = 0;  // [begin_, end_) of buffer_ are read and not yet given.
  size_t searched_ = 0;         // No line ends in [begin_, searched_).
  bool file_ended_ = true;
  uint64_t bytes_read_ = 0;
  uint64_t buffer_offset_ = 0, line_offset_ = 0;  // In the file: of buffer_, of the last line.
};

}  // namespace hdps
