// Reports the file that is being opened or inspected.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/file_identity.h"
#include "common/platform/file_system.h"

namespace hdps {

// Passes all calls to `files`, which must outlive it. Calls `asks` before a file is opened for
// reading, or asked for its size or existence, on the same thread, because any of these may take
// long.
class WatchedFiles : public FileSystem, public FileIdentities {
 public:
  WatchedFiles(FileSystem& files, std::function<void(const std::string& path)> asks)
      : files_(files), asks_(std::move(asks)) {}

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    asks_(path);
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
  Result<uint64_t> FileSize(const std::string& path) override {
    asks_(path);
    return files_.FileSize(path);
  }
  Result<FileStamp> StampOf(const std::string& path) override {
    asks_(path);
    return files_.StampOf(path);
  }
  bool Exists(const std::string& path) override {
    asks_(path);
    return files_.Exists(path);
  }
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

 private:
  FileSystem& files_;
  const std::function<void(const std::string& path)> asks_;
};

}  // namespace hdps
