// Puts the counts of requests and tables into the figures of a server.
#include "server/watch/server_meters.h"

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/tables/figure_tables.h"
#include "common/protocol/command_messages.h"
#include "embedding/table.h"
#include "server/server_node.h"

namespace hdps {

void TableHoldings::Add(const TableSlice& slice) {
  const RowCounts own = slice.counters();
  counts.Add(own);
  rows_in_memory += slice.num_rows() - own.on_disk;
  rows_on_disk += own.on_disk;
  memory_bytes += slice.bytes();
  disk_bytes += slice.disk_bytes();
}

ServerMeters::ServerMeters(const Job& job, MonotonicClock* clock, SpanRecorder* recorder)
    : clock_(clock),
      recorder_(recorder),
      labels_(job.tables.size(), FigureLayout::kNone),
      meters_(FigureLayout(FigureRole::kServer, FigureTables(job).size())) {
  size_t counted = 0;
  for (size_t t = 0; t < job.tables.size(); ++t) {
    if (!job.tables[t].dense) labels_[t] = counted++;
  }
  meters_.Set(FigureNamed("hdps_server_memory_limit_bytes"),
              static_cast<double>(job.cluster.memory_limit));
}

void ServerMeters::CountKeys(const std::vector<TableKeys>& tables) {
  for (const TableKeys& table : tables) {
    meters_.Add(FigureNamed("hdps_server_keys_total"), table.num_keys, labels_[table.table.value]);
  }
}

void ServerMeters::CountAge(TableId table, uint64_t clocks) {
  meters_.Observe(FigureNamed("hdps_server_push_staleness_clocks"), static_cast<int64_t>(clocks),
                  labels_[table.value]);
}

void ServerMeters::CountSaved(const std::vector<SavedFile>& files) {
  for (const SavedFile& file : files) {
    meters_.Add(FigureNamed("hdps_server_saved_bytes_total"), file.bytes);
  }
}

void ServerMeters::CountSave(const Command& save, const CommandDone& done, int64_t begun_ns) {
  if (done.code != Code::kOk || !save.shards.empty()) return;
  CountSaved(done.files);
  if (!done.taken) Took(FigureNamed("hdps_server_save_seconds"), begun_ns);
}

Readings ServerMeters::ReadWhile(bool disk_waits, uint64_t refused_orders) {
  meters_.SetTotal(FigureNamed("hdps_server_refused_orders_total"), refused_orders);
  meters_.Set(FigureNamed("hdps_server_disk_waits"), disk_waits ? 1 : 0);
  return meters_.Read();
}

void ServerMeters::TakeOver(const ServerCounters& counters) {
  meters_.SetTotal(FigureNamed("hdps_server_pulls_total"), counters.pulls);
  meters_.SetTotal(FigureNamed("hdps_server_pushes_total"), counters.pushes);
  meters_.SetTotal(FigureNamed("hdps_server_pushes_repeated_total"), counters.pushes_repeated);
  meters_.SetTotal(FigureNamed("hdps_server_pushes_too_old_total"), counters.pushes_too_old);
}

void ServerMeters::TakeOver(TableId table, const TableHoldings& holdings) {
  const size_t label = labels_[table.value];
  if (label == FigureLayout::kNone) return;
  const auto set = [&](FigureId figure, uint64_t in_memory, uint64_t on_disk) {
    meters_.Set(figure, static_cast<double>(in_memory), label * kTierLabels.size());
    meters_.Set(figure, static_cast<double>(on_disk), label * kTierLabels.size() + 1);
  };
  set(FigureNamed("hdps_server_rows"), holdings.rows_in_memory, holdings.rows_on_disk);
  set(FigureNamed("hdps_server_row_bytes"), holdings.memory_bytes, holdings.disk_bytes);
  const RowCounts& counts = holdings.counts;
  meters_.SetTotal(FigureNamed("hdps_server_rows_admitted_total"), counts.admitted, label);
  meters_.SetTotal(FigureNamed("hdps_server_rows_evicted_total"), counts.evicted, label);
  meters_.SetTotal(FigureNamed("hdps_server_rows_fetched_total"), counts.fetched, label);
}

}  // namespace hdps
