// The base of file systems that change some of the calls to another one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/file_identity.h"
#include "common/platform/file_system.h"

namespace hdps {

// Invariant: a call that is not overridden is one to `files`, which must outlive this object.
class ForwardingFiles : public FileSystem, public FileIdentities {
 public:
  explicit ForwardingFiles(FileSystem& files) : files_(files) {}

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    return files_.OpenSequential(path);
  }
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return files_.Create(path);
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override {
    return files_.OpenAppend(path);
  }
  Status MakeDirectories(const std::string& path) override { return files_.MakeDirectories(path); }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status MakeDirectoriesUnsynced(const std::string& path) override {
    return files_.MakeDirectoriesUnsynced(path);
  }
  Status RenameUnsynced(const std::string& from, const std::string& to) override {
    return files_.RenameUnsynced(from, to);
  }
  Status RemoveAll(const std::string& path) override { return files_.RemoveAll(path); }
  Result<std::vector<std::string>> List(const std::string& path) override {
    return files_.List(path);
  }
  Result<uint64_t> FileSize(const std::string& path) override { return files_.FileSize(path); }
  Result<FileStamp> StampOf(const std::string& path) override { return files_.StampOf(path); }
  bool Exists(const std::string& path) override { return files_.Exists(path); }
  Result<FileAccess> AccessOf(const std::string& path) override { return files_.AccessOf(path); }
  Result<FileIdentity> IdentityOf(const std::string& path) override {
    return hdps::IdentityOf(files_, path);
  }
  bool IsLink(const std::string& path) override { return hdps::IsLink(files_, path); }
  int FaultOfWrite(const std::string& path, uint64_t bytes) override {
    return files_.FaultOfWrite(path, bytes);
  }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& holder) override {
    return files_.Lock(path, holder);
  }

 protected:
  FileSystem& files() { return files_; }

 private:
  FileSystem& files_;
};

}  // namespace hdps
