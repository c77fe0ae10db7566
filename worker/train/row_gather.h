// The rows of one step on their way from the servers into place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/job.h"
#include "common/status.h"
#include "worker/train/node_channel.h"
#include "worker/train/step_pipeline.h"

namespace hdps {

// What waiting for rows cost, and what it would have cost without the work done meanwhile.
struct PullTimes {
  int64_t waited_ns = 0;
  int64_t hidden_ns = 0;  // From the request to the answer, as far as nobody waited.
};

// The one place where the rows of a step are put together.
//
// Invariant: between Ask and Take the step stays as it is. rows()[t] are those of the keys that the
// step needs of table t, in their order, once Take has succeeded; empty for the dense table.
//
// Belongs to the trainer's thread.
class RowGather {
 public:
  RowGather(const Job& job, NodeChannel& channel, MonotonicClock& clock);
  ~RowGather();
  RowGather(RowGather&&) = delete;

  // Sends for the rows. Requires: not asked().
  void Ask(const PreparedStep& step, const PullTerms& terms);
  bool asked() const { return ticket_.has_value(); }
  // Whether Take() will not wait for answers.
  bool ready() { return channel_.Ready(*ticket_); }
  // Waits for them. `dense`: where the dense weights go when the step's split has them.
  Status Take(const PreparedStep& step, std::optional<std::span<float>> dense);
  // Nobody will take them.
  void Forget();

  std::vector<std::vector<float>>& rows() { return rows_; }
  // Of all that were taken since it was last called.
  PullTimes TakeTimes() { return std::exchange(times_, PullTimes()); }

 private:
  const Job& job_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  std::optional<Ticket> ticket_;
  std::vector<ServerId> servers_;  // Whom the requests of ticket_ went to.
  int64_t asked_ns_ = 0;
  std::vector<std::vector<float>> rows_;  // [tables][keys * dim]; kept for its memory.
  PullTimes times_;
};

}  // namespace hdps
