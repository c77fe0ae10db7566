// Reads and stores the dense rows of a job at its servers, outside of steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/dense/dense_at_servers.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/node_channel.h"
#include "worker/model/model.h"

namespace hdps {

enum class PullMode : uint8_t;
struct Job;
struct TableSpec;

// Invariant: keys() are those of the chunks of the model's flat array, in order, and rows are in
// the order of the keys of a call.
//
// Belongs to the trainer's thread.
class DenseRows {
 public:
  // `tensors` are those of the whole model. Requires: `job` and `channel` outlive it.
  DenseRows(const Job& job, const std::vector<DenseTensor>& tensors, NodeChannel& channel);

  const std::vector<Key>& keys() const { return keys_; }
  bool empty() const { return keys_.empty(); }  // Is true if the model has no dense tensors.
  // Those of the tensors that servers keep and update.
  const DenseAtServers& at_servers() const { return at_servers_; }
  // Requires: not empty().
  const TableSpec& spec() const;
  TableId table() const;

  // Read or store the rows of some keys, [keys * row_floats], at a clock.
  Status Read(PullMode mode, uint32_t row_floats, const std::vector<Key>& keys, Clock clock,
              std::span<float> rows) const;
  Status Store(uint32_t row_floats, const std::vector<Key>& keys, Clock clock,
               std::span<const float> rows) const;
  // Reads the weights of all rows into the model; does nothing without dense tensors.
  Status ReadInto(Model& model, Clock clock) const;
  // Reads only those of at_servers(). Requires: the model has its other weights.
  Status ReadServersInto(Model& model, Clock clock) const;

 private:
  std::vector<KeysOfTable> DenseOnly(uint32_t row_floats, const std::vector<Key>& keys) const;

  const Job& job_;
  NodeChannel& channel_;
  const std::vector<Key> keys_;
  const DenseAtServers at_servers_;
};

}  // namespace hdps
