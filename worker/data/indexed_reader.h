// Reads one of many parts of the stream without reading the rows of the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/platform/file_system.h"
#include "common/platform/random.h"
#include "worker/data/batch_reader.h"
#include "worker/data/formats/row_adder.h"

namespace hdps {

// Returns the seed of an epoch's order.
inline uint64_t ShuffleSeed(const ReaderOptions& options, uint32_t epoch) {
  // Keeps the shuffle apart from the other things that the job's seed decides.
  constexpr uint64_t kShuffleSalt = 0x73687566666c6531;
  return RandomAt(options.seed ^ kShuffleSalt, epoch);
}

// Returns the rules of the format's files, without a side.
LineRules FileRulesOf(const DataSpec& data, const std::vector<std::string>& paths,
                      bool labels_read);
// Returns the rules that tell which lines are rows of the stream.
LineRules RulesOf(const DataSpec& data, const std::vector<std::string>& paths,
                  const ReaderOptions& options);

struct ReaderInput {
  FileSystem& files;
  const DataSpec& data;
  const std::vector<std::string>& paths;
  const ReaderOptions& options;
};

// Makes a reader that gives the same batches as `plain`. Its window holds row numbers, and only
// this part's rows are read at their turn, by an index. The first epoch makes the index while it
// looks for line ends; later epochs read nothing else. If that is impossible (packed files, pipes,
// or lines so long that a window fills by bytes before rows), `plain` continues. Requires:
// options.shuffle.
std::unique_ptr<BatchReader> NewIndexedReader(const ReaderInput& input,
                                              std::unique_ptr<RowAdder> rows,
                                              std::unique_ptr<BatchReader> plain);

}  // namespace hdps
