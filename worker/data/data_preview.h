// Previews the first rows of files before they are shuffled, and reports how they were understood.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataSpec;
struct Job;
struct LabelSpec;

struct DataPreview {
  // Description for the operator: the format and its columns, the first row in words, labels and
  // keys.
  std::vector<std::string> lines;
  // Likely mistakes that do not stop the job.
  std::vector<std::string> warnings;
  uint64_t rows = 0;                  // Good rows that were read.
  std::vector<uint64_t> labels = {};  // Number of those rows in each class.
};

// Limits of the preview: rows of the first file, and number of files; later files give one row
// each.
inline constexpr uint64_t kPreviewRows = 1000;
inline constexpr size_t kPreviewFiles = 64;

// Reads `paths` from their beginnings by the job's rules; pipes, which can be read only once, are
// skipped. `num_classes` in `labels` is as in ReaderOptions. kInvalidArgument names the place of
// - the first bad row if data.max_bad_rows is 0, because it will end the job anyway,
// - a header that data.header does not announce,
// - a header with columns in another order than the job's.
Result<DataPreview> PreviewData(FileSystem& files, const DataSpec& data,
                                const std::vector<std::string>& paths,
                                const std::vector<LabelSpec>& labels);

// Previews the files that `job` trains and evaluates on; `lines` describe the first.
Result<DataPreview> PreviewJobData(FileSystem& files, const Job& job);

}  // namespace hdps
