// Writes beside the target and renames when the file is complete.
#include "common/platform/output_file.h"

#include <utility>

#include "common/platform/failpoint.h"
#include "common/platform/file_identity.h"

namespace hdps {
namespace {

Status BeforeRename() {
  HDPS_FAILPOINT_OR_RETURN("file.before_rename");
  return {};
}

// Invariant: until done_, the partial file exists and `path` is unchanged.
class AtomicFile : public WritableFile {
 public:
  AtomicFile(FileSystem& files, std::string path, Survives survives,
             std::unique_ptr<WritableFile> beside)
      : files_(files), path_(std::move(path)), survives_(survives), beside_(std::move(beside)) {}
  ~AtomicFile() override {
    if (!done_) Remove();
  }

  Status Append(std::span<const std::byte> bytes) override { return beside_->Append(bytes); }
  Status Sync() override { return beside_->Sync(); }
  Status Close() override {
    if (done_) return {};
    done_ = true;
    const Status named = Name();
    if (!named.ok()) Remove();
    return named;
  }

 private:
  Status Name() {
    const bool machine = survives_ == Survives::kMachine;
    if (machine) HDPS_RETURN_IF_ERROR(beside_->Sync());
    HDPS_RETURN_IF_ERROR(beside_->Close());
    HDPS_RETURN_IF_ERROR(BeforeRename());
    const std::string from = BesideOf(path_);
    return machine ? files_.Rename(from, path_) : files_.RenameUnsynced(from, path_);
  }
  void Remove() {
    const std::string beside = BesideOf(path_);
    // The first failure is the one to report; a partial file that stays is never read.
    if (files_.Exists(beside)) static_cast<void>(files_.RemoveAll(beside));
  }

  FileSystem& files_;
  const std::string path_;
  const Survives survives_;
  const std::unique_ptr<WritableFile> beside_;
  bool done_ = false;
};

}  // namespace

std::string BesideOf(const std::string& path) { return path + ".tmp"; }

Result<std::unique_ptr<WritableFile>> CreateAtomically(FileSystem& files, const std::string& path) {
  const Result<FileIdentity> there = IdentityOf(files, path);
  const std::string own = there.ok() && !NamesStream(path) ? there->path : path;
  if (there.ok() && !there->plain) return files.OpenAppend(own);
  return ReplaceAtomically(files, own);
}

Status WriteNamedFile(FileSystem& files, const std::string& path, const std::string& text) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, CreateAtomically(files, path));
  HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span<const char>(text))));
  return file->Close();
}

Result<std::unique_ptr<WritableFile>> ReplaceAtomically(FileSystem& files, const std::string& path,
                                                        Survives survives) {
  // Earlier output to the same stream stays, as with `>> log` in a shell.
  if (NamesStream(path)) return files.OpenAppend(path);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> beside, files.Create(BesideOf(path)));
  return std::unique_ptr<WritableFile>(
      std::make_unique<AtomicFile>(files, path, survives, std::move(beside)));
}

Status RefuseInput(FileSystem& files, const std::string& name, const std::string& path,
                   std::span<const InputFile> inputs) {
  if (path.empty()) return {};
  const Result<FileIdentity> there = IdentityOf(files, path);
  const std::string own = there.ok() ? there->path : path;
  const Result<FileIdentity> beside = IdentityOf(files, BesideOf(own));
  for (const InputFile& input : inputs) {
    const Result<FileIdentity> read = IdentityOf(files, input.path);
    if (!read.ok() || !read->plain) continue;
    const bool onto = there.ok() && *there == *read;
    if (!onto && !(beside.ok() && *beside == *read)) continue;
    return {Code::kInvalidArgument, name + " is " + input.what + ", " +
                                        (onto ? "" : "as long as it is written beside itself, ") +
                                        "which would be written over: expected another name"};
  }
  return {};
}

}  // namespace hdps
