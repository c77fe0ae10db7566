// Carries rows and gradients of a table worker's steps to and from the servers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "kernels/keys/unique_keys.h"
#include "worker/exchange/node_channel.h"
#include "worker/exchange/pull_plan.h"
#include "worker/exchange/push_acks.h"
#include "worker/exchange/push_plan.h"
#include "worker/outside/program_state.h"
#include "worker/outside/step_gradients.h"
#include "worker/outside/table_worker.h"

namespace hdps {

struct Job;
struct PullReply;

// Parameters of the step whose gradients are sent.
struct PushedStep {
  Clock clock = 0;
  uint64_t examples = 0;
  double rate = 1;  // Factor of all learning rates.
  uint32_t epoch = 0;
  Clock steps_before = 0;  // As Command::steps_before.
};

// Invariant: a step sends one push to each server and announces its clock when all of them have
// acknowledged it, so what was pulled for a later step holds it. At most pushes_in_flight_max
// pushes wait for their acknowledgements.
class TableExchange {
 public:
  // Requires: both outlive it.
  TableExchange(const TableWorkerOptions& options, NodeChannel& channel);

  // Returns the rows of each table asked for, in the order of `asked`. Requires: the tables exist,
  // are not the dense one, and none is asked for twice.
  Result<std::vector<PulledRows>> Pull(std::span<const AskedKeys> asked, PullFor use, Clock clock);
  // Asks for rows of step `clock` + 1, which Pull() of the same lists takes. Replaces the prefetch
  // before. The same requirements.
  void Prefetch(std::span<const AskedKeys> asked, Clock clock);
  void CancelPrefetch();

  StepGradients& gradients() { return gradients_; }
  // Ends a step: sends its gradients, and forgets what it pulled.
  Status Push(const PushedStep& step);
  // Waits until the servers have acknowledged every push.
  Status Settle();

  // The two halves of a step without examples. The reply to the ticket comes when every other
  // worker has finished this step as well, or is as near to it as train.mode demands.
  Result<Ticket> BeginEmptyStep(const PushedStep& step);
  Status EndEmptyStep(Clock clock, Ticket awaited);

  uint64_t copied_bytes() const { return copied_bytes_ + gradients_.copied_bytes(); }
  // Announces `clock` without pushes for the steps before it. Requires: async mode.
  void Announce(Clock clock);
  // Forgets all that is under way, because the rows are others now.
  void Reset();

 private:
  // Requests that have been sent and not been answered.
  struct PendingPull {
    std::optional<Ticket> ticket;  // None if there was nothing to ask for.
    PullPlan plan;
    int64_t sent_ns = 0;
  };
  struct Prefetched {
    std::vector<std::vector<Key>> keys;  // [asked], as they were asked for.
    std::vector<PulledRows> pulled;      // Their rows are still missing.
    std::unique_ptr<PulledList> list;
    PendingPull pull;
    std::vector<std::vector<float>> rows;  // [tables of the list], once they have come.
  };

  // Is true if both are the same memory, and spread over shards alike.
  bool IsSameList(const AskedKeys& one, const AskedKeys& other) const;
  // Finds the distinct keys, and splits them by server. The rows of `pulled` are made empty.
  std::unique_ptr<PulledList> FindKeys(std::span<const AskedKeys> asked, Clock clock,
                                       std::vector<PulledRows>* pulled);
  PendingPull Send(PullPlan plan, std::vector<ServerRequest> requests);
  Result<std::vector<PullReply>> Await(const PendingPull& pull);
  // Puts the rows of the replies into memory of their own for all tables, in the order of `list`.
  Status Place(const PendingPull& pull, const std::vector<PullReply>& replies,
               const PulledList& list, std::vector<std::vector<float>>* rows);
  // Lets the rows of `pulled` be those of the reply, if all rows can stay there, or in `rows`.
  Status Show(const PendingPull& pull, const std::vector<PullReply>& replies,
              const PulledList& list, std::vector<std::vector<float>> rows,
              std::vector<PulledRows>* pulled);
  bool IsPrefetched(std::span<const AskedKeys> asked) const;
  // Places the prefetched rows and asks for what they lack.
  Result<PendingPull> Repair(Clock clock);
  // Waits for a reply, and takes acknowledgements meanwhile: if a push was refused, the rows that
  // wait for it never come.
  Status AwaitReply(Ticket ticket);
  // Multiplies the step's sums by its number of examples and, outside of sync, clips their norm.
  void Scale(std::span<KeySums> tables, uint64_t examples) const;
  // Sends the push of a step, and its announcement unless that needs the norm of all gradients.
  void Send(const PushedStep& step, PushPlan push, std::span<KeySums> tables, uint64_t list);
  // Announces the end of step `clock` with the sum of squares that servers answer (clip_norm in
  // sync mode), by which they apply it.
  Status AnnounceNorm(Clock clock, Ticket asked);
  Status AwaitAdvance();
  uint32_t num_servers() const;
  MakeBytes SectionMaker();

  const Job& job_;
  NodeChannel& channel_;
  Executor* const executor_;
  const bool rows_in_replies_;
  const bool sync_, clips_all_;  // clips_all_: by the norm of a step's gradients of all workers.
  ProgramState gate_;
  UniqueKeys unique_;
  StepGradients gradients_;
  PushAcks acks_;
  KeySplit joined_split_;  // Of a push whose keys are not those of one pull.
  std::optional<Prefetched> prefetched_;
  std::optional<Ticket> advance_;  // Under clip_norm: the announcement of the last step.
  int64_t step_begun_ns_;          // When the step before was pushed.
  uint64_t next_sequence_ = 0;
  uint64_t next_list_ = 1;
  bool at_gate_ = false;  // A pull of this step has passed the gate of its clock.
  uint64_t copied_bytes_ = 0;
};

}  // namespace hdps
