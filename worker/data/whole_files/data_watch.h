// Detects changes of files while a job reads them.
#pragma once

#include <string>
#include <vector>

#include "common/platform/file_system.h"

namespace hdps {

struct FilePrint;

class DataWatch {
 public:
  // Requires: `files` outlives it.
  DataWatch(FileSystem& files, std::vector<std::string> paths);

  // Returns the changes since the last call, by size or modification time, as a sentence that ends
  // with `then`, the consequence; empty in the first call, and if nothing has changed. Names only
  // the first few files.
  std::string Look(const std::string& then);
  // Returns the fingerprints of the files as they are now, at most kFilePrintsMax. A pipe's is
  // empty.
  std::vector<FilePrint> Prints();

 private:
  FileSystem& files_;
  const std::vector<std::string> paths_;
  std::vector<FileStamp> stamps_;  // [paths], as of the last look; empty before the first.
};

// Returns the length of a file and a hash of its first and last bytes; zero if it cannot be read.
FilePrint PrintOf(FileSystem& files, const std::string& path);
// The same with a hash of the first 4 KiB alone, which stays while a file grows; no hash of less.
FilePrint GrowingPrintOf(FileSystem& files, const std::string& path);

}  // namespace hdps
