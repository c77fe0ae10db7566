// Checks of a snapshot whose bytes are whole against what the job expects, the same for all
// readers.
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

// Compares what the file at `path` says of itself with the manifest and the job. Checksums detect
// damage; these checks detect a file of another shard, step or job in its place.
class SnapshotExpectation {
 public:
  SnapshotExpectation(std::string path, const SnapshotHeader& header,
                      std::vector<SnapshotPart> parts)
      : path_(std::move(path)), expected_(header), parts_(std::move(parts)) {}

  Status CheckHeader(const SnapshotHeader& found, uint32_t num_tables) const;
  // CheckHeader without the job's tables, for readers that do not know them.
  Status CheckPlace(const SnapshotHeader& found) const;
  Status CheckTable(uint32_t t, const std::string& name, uint32_t dim, uint32_t state_floats) const;
  // Checks that keys belong to the shard and that weights are finite: a model with one weight that
  // is not finite cannot predict. State is not checked; its meaning is the optimizer's own.
  Status CheckRows(uint32_t t, std::span<const Key> keys, std::span<const float> rows) const;
  // Checks rows whose first `dim` floats are weights.
  Status CheckWeights(const std::string& table, uint32_t dim, std::span<const Key> keys,
                      std::span<const float> rows) const;

 private:
  Status Broken(const std::string& what) const { return {Code::kCorruption, path_ + ": " + what}; }

  const std::string path_;
  const SnapshotHeader expected_;
  const std::vector<SnapshotPart> parts_;
};

}  // namespace hdps
