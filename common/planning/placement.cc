// Searches each exchange that is left, with cut layers and with kept rows, and compares the
// results.
#include "common/planning/placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/strategy_of_job.h"

namespace hdps {
namespace {

Placement Costed(const Job& job, const JobFacts& facts, FoundStrategy found,
                 const std::vector<KeptRowsChoices>& tables) {
  const StrategyTotal total = TotalOf(facts, found.strategy, job.parallel.rates);
  Placement placed = {std::move(found.strategy), std::move(found.kept), total.seconds,
                      total.memory_bytes};
  placed.kept.resize(tables.size(), 0);
  for (size_t t = 0; t < tables.size(); ++t) {
    placed.seconds += tables[t].options[placed.kept[t]].seconds;
    placed.memory_bytes += tables[t].options[placed.kept[t]].bytes;
  }
  return placed;
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

}  // namespace

Result<Placement> PlaceJob(const Job& job, uint32_t workers,
                           const std::vector<KeptRowsChoices>& tables) {
  const JobFacts facts = FactsOf(job);
  if (job.parallel.kept_strategy || job.parallel.parallel_mode != ParallelMode::kAuto) {
    HDPS_ASSIGN_OR_RETURN(Strategy strategy, StrategyOf(job, workers));
    return Costed(job, facts, {std::move(strategy), {}}, tables);
  }
  HDPS_ASSIGN_OR_RETURN(StrategyChoices choices, ChoicesOf(job, facts, workers));
  Result<FoundStrategy> free = SearchStrategy(job.parallel, facts, choices, workers);
  std::optional<Placement> best;
  const bool keeps = std::ranges::any_of(
      tables, [](const KeptRowsChoices& table) { return table.options[0].rows > 0; });
  if (free.ok() && !keeps) best = Costed(job, facts, *std::move(free), tables);
  if (!tables.empty() && LeaveWhole(workers, &choices)) {
    auto whole = SearchStrategy(job.parallel, facts, choices, workers, tables);
    if (!whole.ok() && !best) return whole.status();
    if (whole.ok()) {
      Placement placed = Costed(job, facts, *std::move(whole), tables);
      if (!best || placed.seconds < best->seconds) best = std::move(placed);
    }
  }
  if (!best) return free.status();
  return *std::move(best);
}

Result<PlacedJob> LoadPlacedJob(FileSystem& files, const WrittenJob& text,
                                std::vector<std::string>* overrides, uint32_t workers,
                                DataFiles needed, const PlacementQuestion& question) {
  HDPS_ASSIGN_OR_RETURN(const Job given, LoadJob(files, text, *overrides, needed));
  if (given.parallel.device_num > 0) workers = given.parallel.device_num;
  if (workers == 0) {
    return Status(Code::kInvalidArgument,
                  text.origin +
                      ": parallel.dense_exchange: auto_parallel chooses it for a number of " +
                      "workers, and a member does not know how many there will be; give " +
                      "parallel.device_num, or set dense_exchange to servers or allreduce");
  }
  std::optional<PlacedJob> best;
  std::string best_override;
  Status refused;
  std::string other;  // What the slower exchange would take.
  for (const std::string& word : ExchangesOf(given.parallel)) {
    std::vector<std::string> with = *overrides;
    with.push_back("parallel.dense_exchange=" + word);
    Result<Job> job = LoadJob(files, text, with, needed);
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
    best_override = with.back();
    best = PlacedJob{*std::move(job), *std::move(placed)};
  }
  if (!best) return refused;
  if (!given.parallel.exchange_open) return *std::move(best);
  overrides->push_back(best_override);
  best->job.parallel.exchange_choice =
      "chose " + best_override + ": " + Milliseconds(best->placement.seconds) +
      " of a step by the costs" +
      (other.empty() ? ", the other cannot be" : ", the other " + other);
  return *std::move(best);
}

Result<Job> LoadPlannedJob(FileSystem& files, const WrittenJob& text,
                           std::vector<std::string>* overrides, uint32_t workers,
                           DataFiles needed) {
  HDPS_ASSIGN_OR_RETURN(Job job, LoadJob(files, text, *overrides, needed));
  if (!job.parallel.exchange_open) return job;
  HDPS_ASSIGN_OR_RETURN(PlacedJob placed,
                        LoadPlacedJob(files, text, overrides, workers, needed, {}));
  return std::move(placed.job);
}

Result<Job> LoadPlannedJob(FileSystem& files, const std::string& path,
                           std::vector<std::string>* overrides, uint32_t workers,
                           DataFiles needed) {
  HDPS_ASSIGN_OR_RETURN(const WrittenJob text, ReadWrittenJob(files, path));
  return LoadPlannedJob(files, text, overrides, workers, needed);
}

}  // namespace hdps
