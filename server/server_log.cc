// Composes the messages.
#include "server/server_log.h"

#include <glog/logging.h>

#include "common/base/byte_count.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/step_lists.h"
#include "common/job/tables/joined_tables.h"
#include "common/net/frame.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_policy.h"

namespace hdps {

void LogPlacement(const Job& job, uint32_t rank, size_t own_shards, size_t workers, int threads) {
  for (const TableSpec& table : job.tables) {
    LOG(INFO) << "table '" << table.name << "': device cpu, update device cpu, rule "
              << OptimizerName(table.optimizer) << ", dim " << table.dim << ", " << RowBytes(table)
              << " bytes a row with state, shards " << own_shards << " of " << job.cluster.shards;
  }
  const std::vector<uint32_t> first_of_group = TablesThatShareRows(job);
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    if (first_of_group[t] == t) continue;
    LOG(INFO) << "tables '" << job.tables[first_of_group[t]].name << "' and '" << job.tables[t].name
              << "' share rows: a key has one entry of the index";
  }
  for (const std::string& sentence : TablesKeptApart(job)) LOG(INFO) << sentence;
  const size_t pulls = workers * ListsOfStep(job);
  const size_t each = workers * job.cluster.pushes_in_flight_max;
  const size_t held = pulls * job.cluster.pushes_in_flight_max;
  const size_t ahead = pulls * job.train.lookahead;
  LOG(INFO) << "server " << rank << ": " << threads << " threads; bounds for " << workers
            << " workers: " << held + ahead << " parked pulls + " << held << " held pushes + "
            << each << " ledger entries + " << held + ahead + 2 * pulls
            << " key lists, each request at most " << (kFrameBytesMax >> 20) << " MiB; rows: "
            << (job.cluster.memory_limit > 0
                    ? "cluster.memory_limit less all else, the others on disk"
                    : "as many as the machine has memory for");
}

void LogRows(const CommandDone& done, const ServerMemoryLimit* memory) {
  const RowCounts& counts = done.counts;
  LOG(INFO) << done.rows << " rows, " << ShowByteCount(done.row_bytes) << " of memory; "
            << counts.admitted << " admitted, " << counts.refused << " gradients refused, "
            << counts.evicted << " evicted; process " << ShowByteCount(done.process_bytes)
            << " at most";
  if (memory == nullptr) return;
  LOG(INFO) << counts.on_disk << " rows on disk alone, " << counts.fetched
            << " came back from there; disk " << ShowByteCount(memory->disk().disk_bytes())
            << ", its memory " << ShowByteCount(memory->disk().memory_bytes());
}

void LogEnd(const Command& command, const CommandDone& done) {
  if (done.code != Code::kOk) {
    LOG(WARNING) << "command " << done.id.value << ": " << done.message;
  } else if (command.command == CommandKind::kLoad) {
    const char* const how = command.keep ? "goes on" : "begins anew";
    LOG(INFO) << (command.path.empty() ? how : "loaded " + command.path) << " at clock "
              << command.until;
  }
}

}  // namespace hdps
