// Reads single rows of files by an index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"
#include "worker/data/line_index.h"
#include "worker/data/line_reader.h"

namespace hdps {

// Invariant: at most kFilesMax files are open.
class RowFetcher {
 public:
  RowFetcher(FileSystem& files, std::vector<std::string> paths, LineRules rules)
      : files_(files), paths_(std::move(paths)), rules_(std::move(rules)) {}

  // Announces that row `row` of the index will be fetched soon.
  Status Announce(const LineIndex& index, uint64_t row);
  // Returns the row's line, valid until the next call. kInvalidArgument if the file has changed.
  Result<Line> Fetch(const LineIndex& index, uint64_t row);
  // Closes the files, because they may be different ones from now on.
  void Close() { open_.clear(); }

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  static constexpr size_t kFilesMax = 16;
  // Returns null if the file can no longer be read at any offset.
  Result<SeekableFile*> Open(uint32_t file);

  FileSystem& files_;
  const std::vector<std::string> paths_;
  const LineRules rules_;
  std::map<uint32_t, std::unique_ptr<SequentialFile>> open_;
  std::vector<char> buffer_;
  uint64_t bytes_read_ = 0;
};

}  // namespace hdps
