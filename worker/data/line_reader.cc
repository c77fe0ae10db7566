// Cuts a stream of bytes into lines.
#include "worker/data/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/data/columnar/table_files.h"
#include "worker/data/follow/followed_log.h"
#include "worker/data/held_out/hold_out.h"
#include "worker/data/idx_file.h"
#include "worker/data/number.h"
#include "worker/data/records/record_files.h"

namespace hdps {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// A CR at the line's end does not count.
bool IsTooLong(std::string_view raw) {
  return raw.size() > kLineBytesMax + (raw.ends_with('\r') ? 1 : 0);
}

}  // namespace

std::string_view HeaderText(std::string_view raw) {
  if (raw.starts_with(kByteOrderMark)) raw.remove_prefix(kByteOrderMark.size());
  if (raw.ends_with('\r')) raw.remove_suffix(1);
  return raw;
}

LineReader::LineReader(FileSystem& files, std::vector<std::string> paths, LineRules rules,
                       TakeHeader take_header)
    : files_(files),
      paths_(std::move(paths)),
      rules_(std::move(rules)),
      take_header_(std::move(take_header)),
      buffer_bytes_(kBufferBytes),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {}

Status LineReader::Start() {
  all_packed_bytes_ = 0;
  if (rules_.log != nullptr) {
    rules_.log->Restart();
    paths_.clear();
  }
  for (const std::string& path : paths_) {
    if (rules_.table != nullptr) {
      all_packed_bytes_ += rules_.table->num_rows() * kRowNumberBytes;
      continue;
    }
    HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files_.FileSize(path));
    all_packed_bytes_ += bytes;
  }
  packed_bytes_before_ = 0;
  rows_ = line_number_ = 0;
  place_before_.clear();
  file_.reset();
  return OpenFile(0);
}

Status LineReader::OpenFile(size_t file) {
  if (file_) packed_bytes_before_ += file_->packed_bytes_read();
  if (rules_.log != nullptr) place_before_ = PlaceOfLast();
  file_.reset();
  file_index_ = file;
  line_number_ = 0;
  begin_ = end_ = searched_ = 0;
  buffer_offset_ = line_offset_ = 0;
  file_ended_ = true;
  if (rules_.log != nullptr) return OpenNextOfLog();
  if (file == paths_.size()) return {};
  if (rules_.table != nullptr) {
    file_ = OpenRowNumbers(rules_.table->num_rows());
  } else if (rules_.records != nullptr) {
    HDPS_ASSIGN_OR_RETURN(file_, rules_.records->Open(files_, paths_[file]));
  } else if (rules_.image_bytes > 0) {
    HDPS_ASSIGN_OR_RETURN(file_,
                          OpenImages(files_, paths_[file], rules_.image_shape, rules_.labels_read));
  } else {
    HDPS_ASSIGN_OR_RETURN(file_, OpenUnpacked(files_, paths_[file]));
  }
  file_ended_ = false;
  return {};
}

Status LineReader::OpenNextOfLog() {
  HDPS_ASSIGN_OR_RETURN(file_, rules_.log->Open(file_index_, [this] { return PlaceOfLast(); }));
  paths_ = rules_.log->paths();
  file_ended_ = file_ == nullptr;
  return {};
}

std::string LineReader::PlaceOfLast() const {
  if (line_number_ == 0) return place_before_;
  return paths_[file_index_] + ":" + std::to_string(line_number_);
}

double LineReader::progress() const {
  if (rules_.log != nullptr) return 0;  // Nobody knows how much is to come.
  if (file_index_ >= paths_.size()) return 1;
  const uint64_t read = packed_bytes_before_ + (file_ ? file_->packed_bytes_read() : 0);
  if (all_packed_bytes_ == 0) return 0;
  return std::min(1.0, static_cast<double>(read) / static_cast<double>(all_packed_bytes_));
}

size_t LineRules::line_bytes() const { return table != nullptr ? kRowNumberBytes : image_bytes; }

std::optional<std::string_view> LineRules::RowOf(std::string_view raw,
                                                 const LinePlace& place) const {
  const uint64_t number = place.number;
  const auto of_other_side = [&](std::string_view text) {
    return side != RowSide::kAll && hold_out->Has(place, text) != (side == RowSide::kHeldOut);
  };
  if (line_bytes() > 0 || records != nullptr)
    return of_other_side(raw) ? std::nullopt : std::optional(raw);
  if (number == 1 && header) return std::nullopt;
  if (number == 1 && raw.starts_with(kByteOrderMark)) raw.remove_prefix(kByteOrderMark.size());
  if (raw.ends_with('\r')) raw.remove_suffix(1);
  if (raw.empty()) return std::nullopt;
  if (static_cast<unsigned char>(raw[0]) <= ' ' && TrimBlanks(raw).empty()) return std::nullopt;
  if (!comment.empty() && raw.starts_with(comment)) return std::nullopt;
  if (of_other_side(raw)) return std::nullopt;
  return raw;
}

Result<bool> LineReader::Next(Line* line) {
  while (file_index_ < paths_.size()) {
    std::string_view text;
    HDPS_ASSIGN_OR_RETURN(const bool found, NextRaw(&text));
    if (!found) {
      HDPS_RETURN_IF_ERROR(OpenFile(file_index_ + 1));
      continue;
    }
    ++line_number_;
    line_offset_ = buffer_offset_ + static_cast<uint64_t>(text.data() - buffer_.get());
    const LinePlace place = {static_cast<uint32_t>(file_index_), line_number_};
    if (line_number_ == 1 && rules_.header) HDPS_RETURN_IF_ERROR(OnHeader(place.file, text));
    const std::optional<std::string_view> row = rules_.RowOf(text, place);
    if (!row) continue;
    *line = {*row, place, rows_++};
    return true;
  }
  return false;
}

Status LineReader::OnHeader(uint32_t file, std::string_view raw) {
  if (take_header_) HDPS_RETURN_IF_ERROR(take_header_(file, HeaderText(raw)));
  if (rules_.hold_out != nullptr) rules_.hold_out->TakeHeader(file, HeaderText(raw));
  return {};
}

Result<bool> LineReader::NextRecord(std::string_view* text) {
  // The file gives whole records or an error, and none of too many bytes.
  uint32_t bytes = 0;
  while (end_ - begin_ < sizeof(bytes) && !file_ended_) HDPS_RETURN_IF_ERROR(ReadMore());
  if (end_ - begin_ < sizeof(bytes)) return false;
  std::memcpy(&bytes, buffer_.get() + begin_, sizeof(bytes));
  while (end_ - begin_ < sizeof(bytes) + bytes && !file_ended_) HDPS_RETURN_IF_ERROR(ReadMore());
  begin_ += sizeof(bytes);
  *text = {buffer_.get() + begin_, std::min<size_t>(bytes, end_ - begin_)};
  begin_ += text->size();
  searched_ = begin_;
  return true;
}

Result<bool> LineReader::NextRaw(std::string_view* text) {
  if (rules_.records != nullptr) return NextRecord(text);
  const size_t bytes = rules_.line_bytes();
  while (bytes > 0 && end_ - begin_ < bytes && !file_ended_) HDPS_RETURN_IF_ERROR(ReadMore());
  if (bytes > 0) {
    // The file gives whole lines or an error.
    *text = {buffer_.get() + begin_, std::min(bytes, end_ - begin_)};
    begin_ += text->size();
    searched_ = begin_;
    return !text->empty();
  }
  while (true) {
    const char* from = buffer_.get() + searched_;
    const auto* newline = static_cast<const char*>(std::memchr(from, '\n', end_ - searched_));
    if (newline != nullptr) {
      const auto stop = static_cast<size_t>(newline - buffer_.get());
      *text = {buffer_.get() + begin_, stop - begin_};
      begin_ = searched_ = stop + 1;
      if (IsTooLong(*text)) return TooLong();
      return true;
    }
    searched_ = end_;
    if (file_ended_ && rules_.whole_lines) return false;
    if (file_ended_) {
      *text = {buffer_.get() + begin_, end_ - begin_};
      begin_ = end_;
      if (IsTooLong(*text)) return TooLong();
      return !text->empty();
    }
    HDPS_RETURN_IF_ERROR(ReadMore());
  }
}

Status LineReader::TooLong() const {
  return {Code::kInvalidArgument, paths_[file_index_] + ":" + std::to_string(line_number_ + 1) +
                                      ": a line of more than " + std::to_string(kLineBytesMax) +
                                      " bytes: expected a text file with a row a line"};
}

// Moves the bytes not yet returned to the front, and reads after them.
Status LineReader::ReadMore() {
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  buffer_offset_ += begin_;
  end_ -= begin_;
  searched_ -= begin_;
  begin_ = 0;
  if (end_ > kLineBytesMax + 1) return TooLong();
  if (end_ == buffer_bytes_) {
    auto larger = std::make_unique_for_overwrite<char[]>(2 * buffer_bytes_);
    std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    buffer_bytes_ *= 2;
  }
  const std::span<char> room(buffer_.get() + end_, buffer_bytes_ - end_);
  HDPS_ASSIGN_OR_RETURN(const size_t got, file_->Read(std::as_writable_bytes(room)));
  end_ += got;
  bytes_read_ += got;
  file_ended_ = got == 0;
  return {};
}

}  // namespace hdps
