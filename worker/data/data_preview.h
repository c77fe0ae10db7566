// A look at the first rows of files before anything is shuffled: what was understood of them.
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
  // For people: the format and its columns, the first row in words, labels and keys.
  std::vector<std::string> lines;
  // Likely mistakes that can be lived with.
  std::vector<std::string> warnings;
  uint64_t rows = 0;                  // Good ones that were looked at.
  std::vector<uint64_t> labels = {};  // How many of them are of each class.
};

// How much is looked at: of the first file so many rows, of the next ones a row each.
inline constexpr uint64_t kPreviewRows = 1000;
inline constexpr size_t kPreviewFiles = 64;

// `paths` are read from their beginnings by the job's own rules; a pipe, which can be read but
// once, is passed over. `num_classes` as in ReaderOptions; 0 where labels are not read.
// kInvalidArgument names the place of
// - the first bad row, where data.max_bad_rows is 0 and it will end the job anyway,
// - a header that data.header does not announce,
// - a header with columns in another order than the job's.
Result<DataPreview> PreviewData(FileSystem& files, const DataSpec& data,
                                const std::vector<std::string>& paths,
                                const std::vector<LabelSpec>& labels);

// The files that `job` trains on and those it evaluates on; `lines` are of the first.
Result<DataPreview> PreviewJobData(FileSystem& files, const Job& job);

}  // namespace hdps
