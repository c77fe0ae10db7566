// A folder for files that are needed only while this process works with them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Invariant: the folder exists, only this user can look into it, and it is removed at the end of
// this object. What a killed process has left is removed by the next one that makes such a folder.
class TemporaryFolder {
 public:
  // Makes PREFIX_XXXXXX below $TMPDIR, else below /tmp. Requires: `files` are those of the
  // operating system, and outlive it.
  static Result<std::unique_ptr<TemporaryFolder>> Make(FileSystem& files,
                                                       const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  FileSystem& files_;
  const std::string path_;
};

// Returns the bytes that are free where the folder is; the most there can be if nothing tells.
uint64_t FreeBytes(const std::string& folder);

}  // namespace hdps
