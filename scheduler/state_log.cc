// An appended state is a line "#BYTES HASH" and behind it the state's text.
#include "scheduler/state_log.h"

#include <charconv>
#include <span>
#include <utility>

#include "common/base/hash.h"

namespace hdps {
namespace {

// Returns the text behind the line at the beginning of `record`; null data if it is not whole.
std::string_view TextOf(std::string_view record) {
  uint64_t bytes = 0, hash = 0;
  const char* const end = record.data() + record.size();
  const auto [at, wrong] = std::from_chars(record.data() + 1, end, bytes);
  if (wrong != std::errc() || at == end || *at != ' ') return {};
  const auto [behind, wrong_hash] = std::from_chars(at + 1, end, hash);
  if (wrong_hash != std::errc() || behind == end || *behind != '\n') return {};
  const std::string_view text(behind + 1, end);
  if (text.size() < bytes || HashString(text.substr(0, bytes)) != hash) return {};
  return text.substr(0, bytes);
}

}  // namespace

Status StateLog::Write(FileSystem& files, const std::string& path, const std::string& text,
                       Survives survives) {
  std::unique_ptr<WritableFile> file = std::move(file_);
  if (file != nullptr && survives == Survives::kProcess && bytes_ + text.size() <= kBytesMax) {
    const std::string record =
        "#" + std::to_string(text.size()) + " " + std::to_string(HashString(text)) + "\n" + text;
    HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span<const char>(record))));
    bytes_ += record.size();
    file_ = std::move(file);
    return {};
  }
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, path, text, survives));
  Result<std::unique_ptr<WritableFile>> opened = files.OpenAppend(path);
  if (opened.ok()) file_ = *std::move(opened);  // Otherwise each state is a new file.
  bytes_ = 0;
  return {};
}

std::string_view NewestState(std::string_view file) {
  constexpr std::string_view kBegin = "\n#";
  for (size_t at = file.rfind(kBegin); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : file.rfind(kBegin, at - 1)) {
    const std::string_view text = TextOf(file.substr(at + 1));
    if (text.data() != nullptr) return text;
  }
  return file.substr(0, file.find(kBegin));
}

}  // namespace hdps
