// Reports the file that is being opened or inspected.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/platform/forwarding_files.h"

namespace hdps {

// Calls `asks` before a file is opened for reading, or asked for its size or existence, on the same
// thread, because any of these may take long.
class WatchedFiles : public ForwardingFiles {
 public:
  WatchedFiles(FileSystem& files, std::function<void(const std::string& path)> asks)
      : ForwardingFiles(files), asks_(std::move(asks)) {}

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    asks_(path);
    return ForwardingFiles::OpenSequential(path);
  }
  Result<uint64_t> FileSize(const std::string& path) override {
    asks_(path);
    return ForwardingFiles::FileSize(path);
  }
  Result<FileStamp> StampOf(const std::string& path) override {
    asks_(path);
    return ForwardingFiles::StampOf(path);
  }
  bool Exists(const std::string& path) override {
    asks_(path);
    return ForwardingFiles::Exists(path);
  }

 private:
  const std::function<void(const std::string& path)> asks_;
};

}  // namespace hdps
