// The dense rows of a job at its servers, as a worker reads and stores them outside the steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/node_channel.h"
#include "worker/model/model.h"

namespace hdps {

enum class PullMode : uint8_t;
struct Job;
struct TableSpec;

// Invariant: keys() are those of the chunks of the model's flat array, in its order, and the rows
// that a call is given or fills stand in the order of its keys.
//
// Belongs to the trainer's thread.
class DenseRows {
 public:
  // `tensors` are those of the whole model. `job` and `channel` outlive it.
  DenseRows(const Job& job, const std::vector<DenseTensor>& tensors, NodeChannel& channel);

  const std::vector<Key>& keys() const { return keys_; }
  bool empty() const { return keys_.empty(); }  // The model has no dense tensors.
  // Requires: not empty().
  const TableSpec& spec() const;
  TableId table() const;

  // Some of the keys and their rows, [keys * row_floats], at a clock.
  Status Read(PullMode mode, uint32_t row_floats, const std::vector<Key>& keys, Clock clock,
              std::span<float> rows) const;
  Status Store(uint32_t row_floats, const std::vector<Key>& keys, Clock clock,
               std::span<const float> rows) const;
  // The weights of all rows become those of the model; nothing where it has no dense tensors.
  Status ReadInto(Model& model, Clock clock) const;

 private:
  std::vector<KeysOfTable> DenseOnly(uint32_t row_floats, const std::vector<Key>& keys) const;

  const Job& job_;
  NodeChannel& channel_;
  const std::vector<Key> keys_;
};

}  // namespace hdps
