// Requests the rows of one step and puts the replies in place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/exchange/node_channel.h"
#include "worker/exchange/pull_plan.h"
#include "worker/step/step_pipeline.h"

namespace hdps {

enum class PullMode : uint8_t;
struct Job;
struct PullReply;

// Tells which step uses the rows and what they must contain.
struct RowTerms {
  Clock clock = 0;   // Clock of the step.
  Clock pushed = 0;  // This worker has sent its pushes of all clocks before this one.
  // The number of the step's first key list, the same for both calls of a step; the others follow.
  uint64_t list = 0;
  // The rows may stay in the reply instead of being copied, if none are inserted among them; see
  // RowsOf().
  bool in_place = false;
};

// Assembles the rows of one step from the prefetched rows, in sync mode from those that have
// changed since, and from the dense rows.
//
// Invariant: the step must not change between PrefetchRows or RequestRows and the last Take or
// CancelRequests. After Take has succeeded for all of the step's key lists, rows()[t] holds the
// rows of the step's keys of table t in the order of the keys, and is empty for the dense table. In
// sync mode the bits do not depend on whether the rows were prefetched.
//
// Belongs to the trainer's thread.
class RowGather {
 public:
  RowGather(const Job& job, NodeChannel& channel, MonotonicClock& clock);
  ~RowGather();
  RowGather(RowGather&&) = delete;

  // Prefetches the rows: requests them as they are after this worker's pushes before clock
  // terms.pushed, and in sync mode after those of all workers. Requires: not has_prefetch(), not
  // requested().
  void PrefetchRows(const PreparedStep& step, const RowTerms& terms);
  bool has_prefetch() const { return !lists_.empty() && lists_.back().ahead.has_value(); }
  // Requests the rows of `step`, or, if some were prefetched, the rows that are missing or stale.
  // If the age of the prefetched rows is not known yet, the request is sent when they arrive. With
  // `mode` kRead the servers answer without waiting for other workers. Requires: not requested().
  void RequestRows(const PreparedStep& step, const RowTerms& terms,
                   PullMode mode = {});  // {}: kTrain.
  bool requested() const { return wanted_.has_value(); }

  // Handles the replies that have come for one of the step's key lists. Returns true if Take() of
  // it will not wait for replies. Requires: requested().
  bool ready(size_t list = 0);
  // Waits for the rows of one of the step's key lists, which are taken in order. The dense weights
  // go to `dense` if the list includes them.
  Status Take(std::optional<std::span<float>> dense, size_t list = 0);
  // Drops the rows and cancels outstanding requests.
  void CancelRequests();
  // Takes the row memory of `done`, whose rows are no longer used, unless this one has memory
  // already.
  void TakeMemoryOf(RowGather& done);

  // Requires: the rows were requested without in_place.
  std::vector<std::vector<float>>& rows() { return rows_; }
  // Returns the rows of one table, wherever they lie; valid until CancelRequests() or the next
  // request.
  const RowSpans<const float>& RowsOf(TableId table) const { return views_[table.value]; }
  // Returns the time between requests and replies in which no thread waited, and resets it to 0.
  int64_t TakeHiddenNs() { return std::exchange(hidden_ns_, 0); }

 private:
  // Requests that have been sent and not been answered.
  struct PendingPull {
    std::optional<Ticket> ticket;  // None if there was nothing to request.
    PullPlan plan;
    int64_t sent_ns = 0;
  };

  // The requests for one of the step's key lists.
  struct ListPulls {
    std::optional<PendingPull> ahead;  // The prefetch, until its rows are in place.
    // The clock up to which the rows of `ahead` are complete at least, so that the missing ones can
    // be requested before those arrive; kNotRead if unknown.
    Clock holds = kNotRead;
    std::optional<PendingPull> last;  // None while it waits for the prefetched rows.
    Status status;                    // Result of the work done in ready().
    bool counted = false;             // How old its rows are has been counted.
  };

  PendingPull Send(PullPlan plan, std::vector<ServerRequest> requests);
  bool Arrived(const PendingPull& pull) { return !pull.ticket || channel_.Ready(*pull.ticket); }
  Result<std::vector<PullReply>> TakeReplies(const PendingPull& pull);
  void RequestList(size_t list, PullMode mode);
  uint64_t NumberOf(size_t list) const;  // Of a key list; 0 if the servers need not know it.
  // Puts the prefetched rows in place, and requests the missing ones unless that has been done.
  Status PlacePrefetched(size_t list);
  // Requests what the prefetched rows lack. since [servers]: the clock up to which each server's
  // prefetched rows are complete; kNotRead if none were read from it.
  void Repair(size_t list, std::span<const Clock> since);
  // Counts how old the rows are which one of the step's key lists got.
  void CountAge(size_t list, Clock clock, const std::vector<PullReply>& replies);
  Status Place(size_t list, const PendingPull& pull, const std::vector<PullReply>& replies,
               std::optional<std::span<float>> dense);

  const Job& job_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  const PreparedStep* step_ = nullptr;
  DType format_ = DType::kFp32;  // Number format in which the rows travel.
  bool in_place_ = false;
  bool trains_ = true;            // The rows are those of a training step.
  std::vector<ListPulls> lists_;  // [lists of the step]; empty before the first request.
  std::optional<RowTerms> wanted_;
  std::vector<std::vector<float>> rows_;  // [tables][keys * dim]; kept for its memory.
  // [tables]: rows_[t], or rows inside the replies in held_.
  std::vector<RowSpans<const float>> views_;
  std::vector<Buffer> held_;  // Replies whose rows are used in place.
  int64_t hidden_ns_ = 0;
  int64_t counted_ns_ = 0;  // Waits and hidden times of the step are counted up to here.
};

}  // namespace hdps
