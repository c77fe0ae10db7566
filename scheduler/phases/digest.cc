// Sums up what all servers hold.
#include "scheduler/phases/digest.h"

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/protocol/command_messages.h"
#include "scheduler/members/membership.h"

namespace hdps {

Next DigestPhase::Begin(const Turn& turn) {
  answers_.clear();
  Command digest = MakeCommand(CommandKind::kDigest);
  digest.until = turn.job.plan->position().clock;
  digest.next = turn.job.plan->finished();
  turn.orders.Send(parts_.members.servers(), digest);
  return Next::Wait();
}

Next DigestPhase::OnAllAnswered(const Turn& turn) {
  RunSummary& summary = turn.job.record.summary;
  summary.digest[0] = summary.digest[1] = summary.rows = 0;
  summary.row_counts = turn.job.record.counts_before;
  summary.row_bytes = summary.server_bytes_max = 0;
  for (const PeerId server : parts_.members.servers()) {
    const CommandDone& done = answers_.at(server);
    summary.digest[0] += done.digest[0];
    summary.digest[1] += done.digest[1];
    summary.rows += done.rows;
    summary.row_counts.Add(done.counts);
    summary.row_bytes += done.row_bytes;
    summary.server_bytes_max = std::max(summary.server_bytes_max, done.process_bytes);
  }
  turn.job.plan->Done();
  return Next::Done();
}

}  // namespace hdps
