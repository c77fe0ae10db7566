// What a job expects of a snapshot whose bytes are whole: one answer for all who read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/snapshot/snapshot_parts.h"

namespace hdps {

// Compares what the file at `path` says of itself with what the manifest and the job say of it.
// Checksums tell damage, not a file of another shard, step or job put in the place of this one.
class SnapshotExpectation {
 public:
  SnapshotExpectation(std::string path, const SnapshotHeader& header,
                      std::vector<SnapshotPart> parts)
      : path_(std::move(path)), expected_(header), parts_(std::move(parts)) {}

  Status CheckHeader(const SnapshotHeader& found, uint32_t num_tables) const;
  // The same without the job's tables, where nobody knows them.
  Status CheckPlace(const SnapshotHeader& found) const;
  Status CheckTable(uint32_t t, const std::string& name, uint32_t dim, uint32_t state_floats) const;
  // Keys belong to the shard, and weights are finite: a model with one that is not answers nothing.
  // State may be anything, its meaning is the optimizer's own.
  Status CheckRows(uint32_t t, std::span<const Key> keys, std::span<const float> rows) const;
  // Of rows whose first `dim` floats are weights.
  Status CheckWeights(const std::string& table, uint32_t dim, std::span<const Key> keys,
                      std::span<const float> rows) const;

 private:
  Status Broken(const std::string& what) const { return {Code::kCorruption, path_ + ": " + what}; }

  const std::string path_;
  const SnapshotHeader expected_;
  const std::vector<SnapshotPart> parts_;
};

}  // namespace hdps
