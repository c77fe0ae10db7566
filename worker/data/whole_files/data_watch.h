// Whether files stay what they were while a job reads them.
#pragma once

#include <string>
#include <vector>

#include "common/platform/file_system.h"

namespace hdps {

struct FilePrint;

class DataWatch {
 public:
  // `files` outlives it.
  DataWatch(FileSystem& files, std::vector<std::string> paths);

  // What has changed since the last time, by size or time of change, in a sentence that ends with
  // `then`, what follows from it; empty the first time, and where nothing has. Of many files the
  // first few are named.
  std::string Look(const std::string& then);
  // The prints of the files as they are, at most kFilePrintsMax. A pipe has an empty one.
  std::vector<FilePrint> Prints();

 private:
  FileSystem& files_;
  const std::vector<std::string> paths_;
  std::vector<FileStamp> stamps_;  // [paths], at the last look; empty before the first.
};

// The length of a file and a hash of its first and last bytes; zero where it cannot be read.
FilePrint PrintOf(FileSystem& files, const std::string& path);

}  // namespace hdps
