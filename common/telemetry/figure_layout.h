// The places of a role's figures in one array of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/telemetry/figure_records.h"

namespace hdps {

// The numbers of all figures of a role and of its process, as Meters hold them and heartbeats carry
// them. A counter is one number for each label; of seconds it counts nanoseconds. A gauge is the
// bits of a double. A histogram is a number for each bucket, then the sum of all values.
//
// Names label some figures: the tables of a job or, of kServing, the sparse features of a model.
//
// Invariant: depends on the list of figures, the role and the number of names alone.
class FigureLayout {
 public:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  FigureLayout(FigureRole role, size_t num_names);

  FigureRole role() const { return role_; }
  size_t num_names() const { return num_names_; }
  size_t size() const { return size_; }
  // Returns the first number of a figure; kNone if neither the role nor its process has it.
  size_t OffsetOf(FigureId id) const { return offsets_[id.index]; }
  // Returns how many label values the figure has, and how many numbers each takes.
  size_t LabelsOf(FigureId id) const;
  static size_t WidthOf(const FigureRecord& record);

 private:
  const FigureRole role_;
  const size_t num_names_;
  size_t size_ = 0;
  std::vector<size_t> offsets_;
};

// The numbers of a layout at one moment; empty: not known.
using Readings = std::vector<uint64_t>;

}  // namespace hdps
