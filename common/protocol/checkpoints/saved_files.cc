// The files of a checkpoint: opens what a manifest names, and verifies it.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/base/hash.h"
#include "common/base/hex_digits.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"
#include "common/protocol/manifest.h"

namespace hdps {
namespace {

// A range of another file.
class PackedFile : public SequentialFile {
 public:
  PackedFile(std::unique_ptr<SequentialFile> pack, uint64_t offset, uint64_t bytes)
      : pack_(std::move(pack)), offset_(offset), left_(bytes) {}

  Result<size_t> Read(std::span<std::byte> buffer) override {
    const auto wanted = buffer.first(std::min<uint64_t>(buffer.size(), left_));
    size_t got = 0;
    if (auto* const seekable = dynamic_cast<SeekableFile*>(pack_.get())) {
      HDPS_ASSIGN_OR_RETURN(got, seekable->ReadAt(offset_, wanted));
    } else {
      HDPS_RETURN_IF_ERROR(Skip());
      HDPS_ASSIGN_OR_RETURN(got, pack_->Read(wanted));
      skipped_ += got;
    }
    offset_ += got;
    left_ -= got;
    return got;
  }

 private:
  Status Skip() {
    std::vector<std::byte> passed(1u << 16);
    while (skipped_ < offset_) {
      const size_t most = std::min<uint64_t>(passed.size(), offset_ - skipped_);
      HDPS_ASSIGN_OR_RETURN(const size_t got, pack_->Read(std::span(passed).first(most)));
      if (got == 0) return {};  // The next read then finds the end.
      skipped_ += got;
    }
    return {};
  }

  const std::unique_ptr<SequentialFile> pack_;
  uint64_t offset_, left_;
  uint64_t skipped_ = 0;  // Position in a file that can only be read in order.
};

Result<SavedFile> ChecksumOf(SequentialFile& file) {
  SavedFile found;
  HashStream hash;
  std::vector<std::byte> buffer(1u << 20);
  for (;;) {
    HDPS_ASSIGN_OR_RETURN(const size_t size, file.Read(buffer));
    if (size == 0) break;
    hash.Append({buffer.data(), size});
    found.bytes += size;
  }
  found.checksum = hash.Value();
  return found;
}

// Errors: kCorruption if a byte of a pack belongs to no file of the manifest, or to two.
Status CheckPacks(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  std::map<std::string, std::set<std::pair<uint64_t, uint64_t>>> packs;  // Offsets and lengths.
  for (const SavedFile& file : manifest.files) {
    if (!file.pack.empty()) packs[file.pack].emplace(file.offset, file.bytes);
  }
  for (const auto& [pack, places] : packs) {
    const std::string path = JoinPath(folder, pack);
    uint64_t end = 0;
    for (const auto& [offset, bytes] : places) {
      if (offset != end) {
        return {Code::kCorruption, path + ": a file of it ends at byte " + std::to_string(end) +
                                       ", the next begins at " + std::to_string(offset)};
      }
      end += bytes;
    }
    HDPS_ASSIGN_OR_RETURN(const uint64_t size, files.FileSize(path));
    if (size != end) {
      return {Code::kCorruption, path + ": " + std::to_string(size) +
                                     " bytes long, the manifest says " + std::to_string(end)};
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SequentialFile>> OpenSaved(FileSystem& files, const std::string& folder,
                                                  const SavedFile& saved) {
  if (saved.pack.empty()) return files.OpenSequential(JoinPath(folder, saved.name));
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> pack,
                        files.OpenSequential(JoinPath(folder, saved.pack)));
  return std::unique_ptr<SequentialFile>(
      std::make_unique<PackedFile>(std::move(pack), saved.offset, saved.bytes));
}

std::string PlaceOf(const std::string& folder, const SavedFile& saved) {
  if (saved.pack.empty()) return JoinPath(folder, saved.name);
  return JoinPath(folder, saved.pack) + ": " + saved.name;
}

Result<SavedFile> ChecksumFile(FileSystem& files, const std::string& folder,
                               const std::string& name) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file,
                        files.OpenSequential(JoinPath(folder, name)));
  HDPS_ASSIGN_OR_RETURN(SavedFile found, ChecksumOf(*file));
  found.name = name;
  return found;
}

Status VerifyCheckpoint(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  for (const SavedFile& expected : manifest.files) {
    const std::string path = PlaceOf(folder, expected);
    if (!files.Exists(JoinPath(folder, expected.pack.empty() ? expected.name : expected.pack))) {
      return {Code::kCorruption, path + ": the file is missing"};
    }
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file, OpenSaved(files, folder, expected));
    HDPS_ASSIGN_OR_RETURN(const SavedFile found, ChecksumOf(*file));
    if (found.bytes != expected.bytes) {
      return {Code::kCorruption, path + ": " + std::to_string(found.bytes) +
                                     " bytes, the manifest says " + std::to_string(expected.bytes)};
    }
    if (found.checksum != expected.checksum) {
      return {Code::kCorruption, path + ": checksum " + HexDigits(found.checksum) +
                                     ", the manifest says " + HexDigits(expected.checksum)};
    }
  }
  return CheckPacks(files, folder, manifest);
}

}  // namespace hdps
