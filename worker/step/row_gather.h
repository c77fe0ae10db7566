// The rows of one step on their way from the servers into place.
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

// When the rows of a step are used, and what they must hold.
struct RowTerms {
  Clock clock = 0;    // Of the step.
  Clock pushed = 0;   // This worker's pushes of the clocks before it have been sent.
  uint64_t list = 0;  // The number of the step's key list; the same for both calls of a step.
  // Rows that nothing is put among need not be copied out of the reply; see RowsOf().
  bool in_place = false;
};

// The one place where the rows of a step are put together: what was read ahead, in sync what has
// changed since, and the dense ones.
//
// Invariant: from AskAhead or Ask on to Take or Forget the step stays as it is. rows()[t] are those
// of the keys that the step needs of table t, in their order, once Take has succeeded; empty for
// the dense table. In sync they are the same bits whether they were asked for ahead or not.
//
// Belongs to the trainer's thread.
class RowGather {
 public:
  RowGather(const Job& job, NodeChannel& channel, MonotonicClock& clock);
  ~RowGather();
  RowGather(RowGather&&) = delete;

  // Sends for the rows as they are behind the pushes of terms.pushed; in sync behind those of all
  // workers. Requires: not asked_ahead(), not asked().
  void AskAhead(const PreparedStep& step, const RowTerms& terms);
  bool asked_ahead() const { return ahead_.has_value(); }
  // Sends for the rows, or for what is missing behind those that were read ahead: at once, or,
  // where it is not known how old they will be, when they are here. With `mode` kRead nothing waits
  // at a gate. Requires: not asked().
  void Ask(const PreparedStep& step, const RowTerms& terms, PullMode mode = {});  // {}: kTrain.
  bool asked() const { return wanted_.has_value(); }

  // Goes on with what has come; whether Take() will not wait for answers. Requires: asked().
  bool ready();
  // Waits for the rows. `dense`: where the dense weights go when the step's split has them.
  Status Take(std::optional<std::span<float>> dense);
  // Nobody will take them.
  void Forget();
  // Takes over the memory of one that is done with its rows, unless it has its own.
  void TakeMemoryOf(RowGather& done);

  // Requires: not asked for in place.
  std::vector<std::vector<float>>& rows() { return rows_; }
  // The same rows of one table, wherever they are; until Forget() or the next request.
  const RowSpans<const float>& RowsOf(TableId table) const { return views_[table.value]; }
  // From requests to their answers, as far as nobody waited, since it was last called.
  int64_t TakeHiddenNs() { return std::exchange(hidden_ns_, 0); }

 private:
  // Requests on their way.
  struct Flight {
    std::optional<Ticket> ticket;  // None when there was nothing to ask for.
    PullPlan plan;
    int64_t sent_ns = 0;
  };

  Flight Send(PullPlan plan, std::vector<ServerRequest> requests);
  bool Arrived(const Flight& flight) { return !flight.ticket || channel_.Ready(*flight.ticket); }
  Result<std::vector<PullReply>> Land(const Flight& flight);
  // Puts the rows that were read ahead in place, and asks for what is missing behind them unless
  // that was done.
  Status LandAhead();
  // since [servers]: which steps the rows read ahead hold; kNotRead where none were.
  void Repair(std::span<const Clock> since);
  Status Place(const Flight& flight, const std::vector<PullReply>& replies,
               std::optional<std::span<float>> dense);

  const Job& job_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  const PreparedStep* step_ = nullptr;
  DType format_ = DType::kFp32;  // As the rows are to travel.
  bool in_place_ = false;
  std::optional<Flight> ahead_;  // Until its rows are in place.
  // Of ahead_: the steps that its rows hold at least, so that what is missing can be asked for
  // before they are here; kNotRead where that is not known.
  Clock holds_ = kNotRead;
  std::optional<RowTerms> wanted_;
  std::optional<Flight> last_;                // None yet while it waits for the rows read ahead.
  Status status_;                             // Of what ready() did.
  std::vector<std::vector<float>> rows_;      // [tables][keys * dim]; kept for its memory.
  std::vector<RowSpans<const float>> views_;  // [tables]: rows_[t], or in replies that are held.
  std::vector<Buffer> held_;                  // Replies with rows in place.
  int64_t hidden_ns_ = 0;
};

}  // namespace hdps
