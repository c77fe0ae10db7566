// Functions on top of FileSystem: whole files, atomic writes, paths.
#include "common/platform/file_system.h"

#include <algorithm>
#include <utility>

#include "common/platform/output_file.h"
#include "common/platform/seekable_file.h"

namespace hdps {
namespace {

// The bytes of a file that cannot be mapped.
class FileInMemory : public MappedFile {
 public:
  explicit FileInMemory(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  const std::vector<std::byte> bytes_;
};

}  // namespace

Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path, uint64_t bytes_max) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file, files.OpenSequential(path));
  constexpr size_t kStepBytes = 1 << 16;
  std::string text;
  size_t used = 0;
  for (;;) {
    if (used > bytes_max) {
      return Status(Code::kInvalidArgument, "cannot read " + path + ": it holds more than the " +
                                                std::to_string(bytes_max) +
                                                " bytes that are allowed here");
    }
    text.resize(used + std::max(kStepBytes, used));
    HDPS_ASSIGN_OR_RETURN(const size_t got, file->Read(std::as_writable_bytes(std::span<char>(
                                                text.data() + used, text.size() - used))));
    if (got == 0) break;
    used += got;
  }
  text.resize(used);
  return text;
}

Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes, Survives survives) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        ReplaceAtomically(files, path, survives));
  HDPS_RETURN_IF_ERROR(file->Append(bytes));
  return file->Close();
}

Status WriteFileAtomically(FileSystem& files, const std::string& path, const std::string& text,
                           Survives survives) {
  return WriteFileAtomically(files, path, std::as_bytes(std::span<const char>(text)), survives);
}

Status HeldBy(const std::string& path, const std::string& holder) {
  return Status(Code::kInvalidArgument,
                path + " is held by " + (holder.empty() ? "another process" : holder));
}

std::string JoinPath(const std::string& folder, const std::string& name) {
  if (folder.empty() || name.starts_with('/')) return name;
  return folder.ends_with('/') ? folder + name : folder + '/' + name;
}

Result<std::unique_ptr<MappedFile>> MapFile(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SequentialFile> file, files.OpenSequential(path));
  if (auto* const mappable = dynamic_cast<MappableFile*>(file.get()); mappable != nullptr) {
    return mappable->Map();
  }
  HDPS_ASSIGN_OR_RETURN(const uint64_t size, files.FileSize(path));
  std::vector<std::byte> bytes(size);
  size_t filled = 0;
  while (filled < bytes.size()) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, file->Read(std::span(bytes).subspan(filled)));
    if (got == 0) return Status(Code::kIoError, path + " became shorter while it was read");
    filled += got;
  }
  return std::unique_ptr<MappedFile>(std::make_unique<FileInMemory>(std::move(bytes)));
}

}  // namespace hdps
