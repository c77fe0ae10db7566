// Files whose reads and writes fail once their user is told to stop.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/file_system.h"

namespace hdps {

// Passes all calls to `files`, which must outlive it, until stopped(): then kCancelled comes for
// each block of a file that is still to be read or written, so that a load of any length ends with
// the block at hand.
class StoppableFiles : public FileSystem {
 public:
  // `stop` may be null.
  StoppableFiles(FileSystem& files, const std::atomic<bool>* stop) : files_(files), stop_(stop) {}

  // May be called by any thread.
  void Stop() { stopped_ = true; }
  // Returns the files without the stop, for what goes on until all requests are answered.
  FileSystem& lasting() { return files_; }
  bool stopped() const { return stopped_ || (stop_ != nullptr && *stop_); }
  Status CheckGoesOn(const std::string& path) const;

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override;
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
  int FaultOfWrite(const std::string& path, uint64_t bytes) override {
    return files_.FaultOfWrite(path, bytes);
  }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& holder) override {
    return files_.Lock(path, holder);
  }

 private:
  FileSystem& files_;
  const std::atomic<bool>* const stop_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hdps
