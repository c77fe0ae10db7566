// Formats a placement as a table.
#include "tools/plan/placement_text.h"

#include <algorithm>

#include "common/base/byte_count.h"
#include "common/base/counted.h"
#include "common/base/show_number.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/table_choices.h"
#include "tools/plan/aligned_rows.h"

namespace hdps {
namespace {

std::string Bytes(double bytes) { return ShowByteCount(static_cast<uint64_t>(bytes)); }
std::string Milliseconds(double seconds) { return ShowNumber("%.3g ms", seconds * 1e3); }

class PlacementTable {
 public:
  explicit PlacementTable(const PlacementView& view)
      : view_(view),
        job_(view.placed.job),
        at_(view.placed.placement),
        facts_(FactsOf(job_)),
        cost_(facts_, at_.strategy.workers, job_.parallel.rates) {}

  std::string Run() {
    for (size_t c = 0; c < at_.tables.size(); ++c) AddTables(c);
    for (size_t i = 0; i < facts_.layers.size(); ++i) AddLayer(i);
    const ParallelSpec& parallel = job_.parallel;
    std::string text = "placement over " + Counted(view_.servers, "server") + " and " +
                       Counted(at_.strategy.workers, "worker") + ", layers computed on " +
                       job_.model.device + " (model.device)";
    if (!parallel.choice.empty()) text += ": " + parallel.choice;
    text += "\n\n" + AlignedRows(rows_) + "\n";
    text += "a step of " + std::to_string(facts_.batch) + " examples: about " +
            Milliseconds(at_.seconds) + " of dense layers, rows and what moves; memory of a " +
            "worker about " + Bytes(at_.memory_bytes) + ", of a server " + Bytes(server_bytes_) +
            "\n";
    text += "taken by --set=parallel.parallel_mode=auto_parallel,parallel.device_num=" +
            std::to_string(at_.strategy.workers) +
            ",parallel.dense_exchange=" + std::string(WordOf(parallel.dense_exchange)) +
            table_settings_ + "\n";
    return text;
  }

 private:
  // Adds the tables that have the same settings. Bytes are of a server with an equal part.
  void AddTables(size_t choice) {
    const TablesOfChoice of = TablesOf(job_, choice);
    const TableOption& option = at_.tables[choice];
    std::string names;
    double seconds = option.seconds, bytes = 0;
    for (size_t t = of.begin; t < of.end; ++t) {
      const JobShape::Table& table = view_.shape.tables[t];
      names += (names.empty() ? "" : ", ") + table.name;
      bytes += view_.rows * double(table.row_bytes) / view_.servers;
      for (size_t i = 0; i < facts_.layers.size(); ++i) {
        if (facts_.layers[i].table != table.name) continue;
        seconds += cost_.OfLayer(i, at_.strategy.layers[i]).seconds();
      }
    }
    server_bytes_ += bytes;
    for (const std::string& setting : option.settings) table_settings_ += "," + setting;
    std::string place = "servers";
    if (!option.cut.empty()) place += ", " + option.cut;
    if (option.kept > 0) {
      place += "; the " + std::to_string(option.kept) + " rows seen most at workers";
    }
    rows_.push_back(
        {names, "table", place, Milliseconds(seconds), Bytes(option.bytes), Bytes(bytes)});
  }

  void AddLayer(size_t i) {
    const LayerFacts& layer = facts_.layers[i];
    if (layer.tensor_floats == 0) return;
    const LayerSplit& split = at_.strategy.layers[i];
    const LayerCost of = cost_.OfLayer(i, split);
    const bool whole = split == OwnRowsSplit(at_.strategy.workers);
    double bytes = 0;
    if (facts_.dense_at_servers) {
      bytes = sizeof(float) * layer.tensor_floats * (1 + facts_.state_floats) / view_.servers;
    }
    server_bytes_ += bytes;
    rows_.push_back({layer.name, layer.kind,
                     facts_.dense_at_servers ? "servers"
                     : whole                 ? "workers, by allreduce"
                                             : "workers, " + ShowSplit(split, at_.strategy.workers),
                     Milliseconds(of.seconds()), Bytes(of.memory_bytes), Bytes(bytes)});
  }

  const PlacementView& view_;
  const Job& job_;
  const Placement& at_;
  const JobFacts facts_;
  const StrategyCost cost_;
  std::vector<std::vector<std::string>> rows_ = {
      {"what", "kind", "place", "time", "a worker", "a server"}};
  double server_bytes_ = 0;
  std::string table_settings_;
};

}  // namespace

std::string PlacementText(const PlacementView& view) { return PlacementTable(view).Run(); }

}  // namespace hdps
