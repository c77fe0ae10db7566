// Searches each exchange that is left, with cut layers and with kept rows, and compares the
// results. Cuts of tables depend on neither, so the cheapest is taken.
#include "common/planning/placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/strategy_of_job.h"
#include "common/planning/table_choices.h"

namespace hdps {
namespace {

Placement Costed(const Job& job, const JobFacts& facts, Strategy strategy,
                 std::vector<TableOption> tables) {
  const StrategyTotal total = TotalOf(facts, strategy, job.parallel.rates);
  Placement placed = {std::move(strategy), std::move(tables), total.seconds, total.memory_bytes};
  for (const TableOption& table : placed.tables) {
    placed.seconds += table.seconds;
    placed.memory_bytes += table.bytes;
  }
  return placed;
}

// Returns the first option of each group of tables, or with `any` the cheapest one that keeps no
// rows.
std::vector<TableOption> WithoutSearch(const std::vector<TableChoices>& tables, bool any) {
  std::vector<TableOption> chosen;
  for (const TableChoices& table : tables) {
    const TableOption* best = table.options.data();
    for (const TableOption& option : table.options) {
      if (any && option.kept == 0 && option.seconds < best->seconds) best = &option;
    }
    chosen.push_back(*best);
  }
  return chosen;
}

// Leaves every layer whole. Returns false if the job pins a cut.
bool LeaveWhole(uint32_t workers, StrategyChoices* choices) {
  const LayerSplit whole = OwnRowsSplit(workers);
  for (std::vector<LayerSplit>& splits : choices->splits) {
    if (std::ranges::find(splits, whole) == splits.end()) return false;
    splits = {whole};
  }
  return true;
}

std::string Milliseconds(double seconds) { return ShowNumber("%.3g ms", seconds * 1e3); }

// Returns the words of the exchanges that are left.
std::vector<std::string> ExchangesOf(const ParallelSpec& parallel) {
  if (!parallel.exchange_open) return {std::string(WordOf(parallel.dense_exchange))};
  return {std::string(WordOf(DenseExchange::kServers)),
          std::string(WordOf(DenseExchange::kAllreduce))};
}

uint32_t WorkersOf(const Job& job, uint32_t workers) {
  return job.parallel.device_num > 0 ? job.parallel.device_num : workers;
}

// Loads the job anew with the settings of the chosen options of tables, if they have any.
Status SetTables(FileSystem& files, const std::string& path, DataFiles needed,
                 std::vector<std::string>* overrides, PlacedJob* placed, std::string* told) {
  std::string settings;
  double seconds = 0;
  for (const TableOption& table : placed->placement.tables) {
    if (table.settings.empty()) continue;
    seconds += table.seconds;
    for (const std::string& setting : table.settings) {
      settings += (settings.empty() ? "" : ", ") + setting;
      overrides->push_back(setting);
    }
  }
  if (settings.empty()) return {};
  *told += (told->empty() ? "chose " : "; chose ") + settings + ": " + Milliseconds(-seconds) +
           " of a step less, by how often keys come";
  const StepRates rates = placed->job.parallel.rates;
  HDPS_ASSIGN_OR_RETURN(placed->job, LoadJob(files, path, *overrides, needed));
  placed->job.parallel.rates = rates;
  return {};
}

}  // namespace

std::function<bool(const std::vector<std::string>&)> FitsJob(FileSystem& files, std::string path,
                                                             std::vector<std::string> overrides) {
  return [&files, path = std::move(path),
          overrides = std::move(overrides)](const std::vector<std::string>& settings) {
    std::vector<std::string> with = overrides;
    with.insert(with.end(), settings.begin(), settings.end());
    return LoadJob(files, path, with, DataFiles::kNotNeeded).ok();
  };
}

Result<Placement> PlaceJob(const Job& job, uint32_t workers,
                           const std::vector<TableChoices>& tables) {
  const JobFacts facts = FactsOf(job);
  if (job.parallel.kept_strategy || job.parallel.parallel_mode != ParallelMode::kAuto) {
    HDPS_ASSIGN_OR_RETURN(Strategy strategy, StrategyOf(job, workers));
    return Costed(job, facts, std::move(strategy), WithoutSearch(tables, /*any=*/false));
  }
  HDPS_ASSIGN_OR_RETURN(StrategyChoices choices, ChoicesOf(job, facts, workers));
  Result<FoundStrategy> free = SearchStrategy(job.parallel, facts, choices, workers);
  std::optional<Placement> best;
  const bool keeps = std::ranges::any_of(
      tables, [](const TableChoices& table) { return table.options[0].kept > 0; });
  if (free.ok() && !keeps) {
    best = Costed(job, facts, std::move(free->strategy), WithoutSearch(tables, /*any=*/true));
  }
  if (!tables.empty() && LeaveWhole(workers, &choices)) {
    auto whole = SearchStrategy(job.parallel, facts, choices, workers, tables);
    if (!whole.ok() && !best) return whole.status();
    if (whole.ok()) {
      std::vector<TableOption> chosen;
      for (size_t t = 0; t < tables.size(); ++t) {
        chosen.push_back(tables[t].options[whole->options[t]]);
      }
      Placement placed = Costed(job, facts, std::move(whole->strategy), std::move(chosen));
      if (!best || placed.seconds < best->seconds) best = std::move(placed);
    }
  }
  if (!best) return free.status();
  return *std::move(best);
}

Result<PlacedJob> LoadPlacedJob(FileSystem& files, const std::string& path,
                                std::vector<std::string>* overrides, uint32_t workers,
                                DataFiles needed, const PlacementQuestion& question) {
  HDPS_ASSIGN_OR_RETURN(const Job given, LoadJob(files, path, *overrides, needed));
  workers = WorkersOf(given, workers);
  if (workers == 0) {
    const bool exchange = given.parallel.exchange_open;
    return Status(Code::kInvalidArgument,
                  path +
                      (exchange ? ": parallel.dense_exchange: auto_parallel chooses it"
                                : ": data.distinct: auto_parallel places tables by it") +
                      " for a number of workers, and a member does not know how many there will " +
                      "be; give parallel.device_num, or " +
                      (exchange ? "set dense_exchange to servers or allreduce" : "leave it out"));
  }
  std::optional<PlacedJob> best;
  std::string exchange;
  Status refused;
  std::string other;  // What the slower exchange would take.
  for (const std::string& word : ExchangesOf(given.parallel)) {
    std::vector<std::string> with = *overrides;
    with.push_back("parallel.dense_exchange=" + word);
    Result<Job> job = LoadJob(files, path, with, needed);
    if (job.ok() && question.rates) job->parallel.rates = *question.rates;
    Result<Placement> placed =
        job.ok() ? PlaceJob(*job, workers, question.tables) : Result<Placement>(job.status());
    if (!placed.ok()) {
      refused = placed.status();
      continue;
    }
    const bool better = !best || placed->seconds < best->placement.seconds;
    if (best) other = Milliseconds(better ? best->placement.seconds : placed->seconds);
    if (!better) continue;
    exchange = with.back();
    best = PlacedJob{*std::move(job), *std::move(placed)};
  }
  if (!best) return refused;
  std::string told;
  if (given.parallel.exchange_open) {
    overrides->push_back(exchange);
    told = "chose " + exchange + ": " + Milliseconds(best->placement.seconds) +
           " of a step by the costs" +
           (other.empty() ? ", the other cannot be" : ", the other " + other);
  }
  HDPS_RETURN_IF_ERROR(SetTables(files, path, needed, overrides, &*best, &told));
  best->job.parallel.choice = told;
  return *std::move(best);
}

Result<Job> LoadPlannedJob(FileSystem& files, const std::string& path,
                           std::vector<std::string>* overrides, uint32_t workers,
                           DataFiles needed) {
  HDPS_ASSIGN_OR_RETURN(Job job, LoadJob(files, path, *overrides, needed));
  const bool tables_open = !job.parallel.open_settings.empty() && !job.data.distinct.empty();
  if (!job.parallel.exchange_open && !tables_open) return job;
  PlacementQuestion question;
  if (tables_open) {
    const uint32_t known = std::max(WorkersOf(job, workers), 1u);
    const TableQuestion keys = {LawsOf(job), known, known, job.parallel.rates};
    question.tables = TableChoicesOf(job, keys, FitsJob(files, path, *overrides));
  }
  HDPS_ASSIGN_OR_RETURN(PlacedJob placed,
                        LoadPlacedJob(files, path, overrides, workers, needed, question));
  return std::move(placed.job);
}

}  // namespace hdps
