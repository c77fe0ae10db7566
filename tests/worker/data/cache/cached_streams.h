// Data of every text format, and the comparison of batches that were read in two ways.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/platform/forwarding_files.h"
#include "worker/data/batch_reader.h"
#include "worker/data/cache/row_caches.h"

namespace hdps {

// Files in memory that count how often a file of data is opened.
class CountedFiles : public ForwardingFiles {
 public:
  CountedFiles() : CountedFiles(NewMemoryFileSystem()) {}
  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    if (!path.ends_with(".rows")) ++texts_opened;
    return ForwardingFiles::OpenSequential(path);
  }
  int texts_opened = 0;

 private:
  explicit CountedFiles(std::unique_ptr<FileSystem> files)
      : ForwardingFiles(*files), own_(std::move(files)) {}
  const std::unique_ptr<FileSystem> own_;
};

// A stream of about 300 rows, some of them bad, behind headers, blank lines and comments where the
// format has such.
struct FormatCase {
  std::string name;
  DataSpec data;
  std::string text;
  std::vector<LabelSpec> labels = {{"", 2}};
};
std::vector<FormatCase> FormatCases();

// What one epoch gave.
struct EpochRead {
  std::vector<Batch> batches;
  uint64_t bad_rows = 0;
};
EpochRead ReadOneEpoch(BatchReader& reader, uint32_t epoch, uint64_t skip_steps = 0);
void ExpectSame(const EpochRead& one, const EpochRead& other);

// Options of a cache with much memory and, if not empty, a folder.
RowCacheOptions MuchMemory(const std::string& folder = "");
RowCacheOptions OnDisk(const std::string& folder = "kept");

}  // namespace hdps
