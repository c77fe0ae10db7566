// The rows of a batch parsed by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "worker/data/batch.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/line_reader.h"

namespace hdps {

// With fewer threads the cores have enough to do beside the reader's own.
inline constexpr int kLaneThreadsMin = 4;

// Holds the lines of a batch and parses them in lanes, each a run of neighbours by a thread with a
// parser of its own.
//
// Invariant: the batch is the one that a single thread makes of the lines, to the bit.
class RowLanes {
 public:
  // One parser more; all are alike.
  using MakeAdder = std::function<Result<std::unique_ptr<RowAdder>>()>;
  RowLanes(MakeAdder make, Executor& executor) : make_(std::move(make)), executor_(executor) {}

  void Clear();
  // Copies the text.
  void Add(const Line& line, uint64_t position);
  size_t size() const { return lines_.size(); }
  Line line(size_t i) const;
  uint64_t position(size_t i) const { return lines_[i].position; }

  // Packs the rows of further batches, too, into runs(), which hold those of the last batch.
  void PackRows(bool pack) { packs_ = pack; }
  const std::vector<CachedRun>& runs() const { return runs_; }

  // The batch of all lines, with the headers that `main` has taken. None where a line is no row:
  // nothing was counted then, and `main` has to add the lines one by one.
  Result<std::optional<Batch>> Parse(const RowAdder& main, uint64_t first_row);

 private:
  struct HeldLine {
    size_t begin, size;  // In text_.
    LinePlace place;
    uint64_t position;  // In the epoch.
    uint64_t row;
  };

  const MakeAdder make_;
  Executor& executor_;
  std::vector<char> text_;
  std::vector<HeldLine> lines_;
  std::vector<std::unique_ptr<RowAdder>> adders_;  // [lanes]
  bool packs_ = false;
  std::vector<CachedRun> runs_;  // [lanes of the last batch]
};

}  // namespace hdps
