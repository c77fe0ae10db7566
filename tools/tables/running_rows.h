// Reads rows of a running job from its servers, without being a member of the job.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/view.h"
#include "tools/scheduler_question.h"
#include "worker/exchange/ps_client.h"

namespace hdps {

struct KeysOfTable;

// The rows of one running job. Belongs to one thread at a time.
//
// Invariant: servers are asked in the newest view that the scheduler has told, and only to read, so
// a job trains to the same bits.
class RunningRows {
 public:
  // Asks the scheduler for the job and its servers. Errors: kInvalidArgument if the job tells them
  // to members alone; kUnavailable if nobody answers, or if there are no servers yet. Requires:
  // `scheduler` outlives the result.
  static Result<std::unique_ptr<RunningRows>> Open(SchedulerConnection& scheduler);

  const Job& job() const { return job_; }

  // Returns the weights of keys of a sparse table, [keys, dim], as they are while it asks: rows of
  // several servers may be some steps apart. A key without a row reads as its initial value.
  // `feature`: the keys are those of values of this sparse feature of the table. Errors:
  // kInvalidArgument if workers keep rows of the table, or if it is cut by feature and none is
  // given; kTimeout or kUnavailable if a server or the scheduler does not answer.
  Result<std::vector<float>> Read(TableId table, std::span<const Key> keys,
                                  const std::optional<std::string>& feature);

 private:
  RunningRows(SchedulerConnection& scheduler, const PeerName& self);

  // Asks for the servers, and takes a view that is new.
  Status AskPlaces();
  // Returns the shards of keys that do not tell them themselves, row slice by row slice; empty for
  // other tables.
  Result<std::vector<uint32_t>> ShardsOf(TableId table, std::span<const Key> keys,
                                         const std::optional<std::string>& feature) const;
  // Reads keys of one request a server, also across changes of the view.
  Status ReadSome(const KeysOfTable& keys, std::span<float> rows);
  // Waits for the replies to a ticket; none if the view has changed since.
  Result<std::optional<std::vector<Frame>>> Await(Ticket ticket);

  SchedulerConnection& scheduler_;
  const std::unique_ptr<MonotonicClock> clock_;
  const std::unique_ptr<Transport> transport_;
  PsClient client_;
  Job job_;
  std::shared_ptr<const View> view_;  // Null before the first.
  uint64_t last_ticket_ = 0;
};

}  // namespace hdps
