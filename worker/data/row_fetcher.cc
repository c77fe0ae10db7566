// Reads one group of lines, and counts to the row that is wanted.
#include "worker/data/row_fetcher.h"

#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace hdps {

Result<SeekableFile*> RowFetcher::Open(uint32_t file) {
  auto at = open_.find(file);
  if (at == open_.end()) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> opened,
                          files_.OpenSequential(paths_[file]));
    if (open_.size() == kFilesMax) open_.erase(open_.begin());
    at = open_.emplace(file, std::move(opened)).first;
  }
  return dynamic_cast<SeekableFile*>(at->second.get());
}

Status RowFetcher::Announce(const LineIndex& index, uint64_t row) {
  const LineIndex::RowGroup group = index.GroupOf(row);
  HDPS_ASSIGN_OR_RETURN(SeekableFile* const file, Open(group.file));
  if (file != nullptr) file->WillRead(group.begin, group.end - group.begin);
  return Status();
}

Result<Line> RowFetcher::Fetch(const LineIndex& index, uint64_t row) {
  const LineIndex::RowGroup group = index.GroupOf(row);
  const Status changed(Code::kInvalidArgument,
                       paths_[group.file] +
                           " is not what it was when this job first read it: "
                           "expected a file that stays as it is while it is trained on");
  HDPS_ASSIGN_OR_RETURN(SeekableFile* const file, Open(group.file));
  if (file == nullptr) return changed;
  const size_t bytes = group.end - group.begin;
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  size_t filled = 0;
  while (filled < bytes) {
    const std::span<char> room(buffer_.data() + filled, bytes - filled);
    HDPS_ASSIGN_OR_RETURN(const size_t got,
                          file->ReadAt(group.begin + filled, std::as_writable_bytes(room)));
    if (got == 0) return changed;
    filled += got;
  }
  bytes_read_ += bytes;
  uint64_t row_here = group.first_row, number = group.number;
  for (size_t begin = 0; begin < bytes; ++number) {
    const char* const from = buffer_.data() + begin;
    const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', bytes - begin));
    const size_t size = newline == nullptr ? bytes - begin : size_t(newline - from);
    begin += size + 1;
    const std::optional<std::string_view> text = rules_.RowOf({from, size}, {group.file, number});
    if (!text) continue;
    if (row_here == row) return Line{*text, {group.file, number}};
    ++row_here;
  }
  return changed;
}

}  // namespace hdps
