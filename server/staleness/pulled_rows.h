// Keeps the rows that workers have pulled for the steps under way, and compensates gradients for
// what has changed since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/protocol/row_messages.h"
#include "server/key_list_cache.h"
#include "server/shard_set.h"

namespace hdps {

struct Job;

// The first-order correction of a late gradient (Zheng et al. 2017, equation 10): for each weight
// the gradient g, computed at `then`, becomes g + lambda g g (now - then). `gradients` are g /
// scale; the result is so, too. A correction that is no number leaves the gradient as it is.
void CompensateDelay(float lambda, float scale, std::span<const float> now,
                     std::span<const float> then, std::span<float> gradients);

// Invariant: at most `lookahead` + 2 steps of a worker are kept, which are those that it has pulled
// and not pushed; without train.delay_compensation nothing is kept.
//
// Used only from the loop of one ServerNode.
class PulledRows {
 public:
  explicit PulledRows(const Job& job);

  bool on() const { return lambda_ != 0; }
  // Keeps the rows of a pull to train, as they are now and under the mark of its reply.
  void Keep(PeerId worker, const PullRequest& pull, std::shared_ptr<const KeyList> list,
            uint64_t mark, ShardSet& shards);
  // Compensates the gradients of a push that names the marks of kept rows, and forgets these. The
  // gradients are then in 32 bits and without a scale of their own; `sum_scale` is the factor that
  // they are given besides the push's. Tables whose optimizer takes no compensation stay as they
  // are.
  void Compensate(PeerId worker, float sum_scale, ShardSet& shards, PlannedPush* push);
  void RemoveWorker(PeerId worker) { workers_.erase(worker); }
  void Clear() { workers_.clear(); }
  size_t bytes() const;

 private:
  struct Rows {
    uint64_t mark = 0;  // 0: none.
    Buffer floats;      // [plan's floats] in 32 bits.
  };
  struct Step {
    std::shared_ptr<const KeyList> list;
    Rows sparse, dense;
  };

  const Job& job_;
  const float lambda_;
  const size_t steps_max_;
  std::vector<bool> takes_;  // [tables]
  std::map<PeerId, std::map<Clock, Step>> workers_;
};

// Returns the bytes of rows that are kept of `workers` if one step of all of them has so many bytes
// of rows at a server; 0 without train.delay_compensation.
uint64_t PulledRowBytes(const Job& job, uint64_t step_row_bytes);

}  // namespace hdps
