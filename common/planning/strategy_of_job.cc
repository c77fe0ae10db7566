// Chooses the source of the splits by the mode of the job.
#include "common/planning/strategy_of_job.h"

#include <filesystem>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/hex_digits.h"
#include "common/job/job_spec.h"
#include "common/job/layer_shard.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/strategy/strategy_file.h"
#include "common/planning/layer_facts.h"
#include "common/planning/strategy_choices.h"
#include "common/planning/strategy_cost.h"
#include "common/planning/strategy_search.h"

namespace hdps {
namespace {

Status Wrong(const std::string& place, const std::string& problem) {
  return {Code::kInvalidArgument, place + ": " + problem};
}

// Returns the splits of the job's layers from the file, or why the file does not fit the job.
Result<Strategy> FromFile(const KeptStrategy& kept, const JobFacts& facts, uint32_t workers) {
  if (kept.strategy.workers != workers) {
    return Wrong(kept.path, "workers: it is a strategy for " +
                                std::to_string(kept.strategy.workers) + " workers, and there are " +
                                std::to_string(workers) +
                                "; start as many, or plan again without "
                                "parallel.strategy_ckpt_load_file");
  }
  if (const uint64_t graph = GraphHash(facts); kept.graph != graph) {
    return Wrong(kept.path, "graph: it is a strategy of the model " + HexDigits(kept.graph) +
                                ", and this job's is " + HexDigits(graph) +
                                "; plan again without parallel.strategy_ckpt_load_file");
  }
  const size_t count = facts.layers.size();
  if (kept.names.size() != count) {
    return Wrong(kept.path, "layers: there are " + std::to_string(kept.names.size()) +
                                ", and the model has " + std::to_string(count) +
                                "; give each its line");
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string place = "layers." + std::to_string(i) + " (\"" + kept.names[i] + "\"): ";
    if (kept.names[i] != facts.layers[i].name || kept.kinds[i] != facts.layers[i].kind) {
      return Wrong(kept.path, place + "here the model has \"" + facts.layers[i].name +
                                  "\" of kind " + facts.layers[i].kind +
                                  "; keep the order of the layers");
    }
    const std::string why = WhyNotSplit(facts.layers[i], kept.strategy.layers[i], workers);
    if (!why.empty()) return Wrong(kept.path, place + why);
  }
  const std::string why = WhyNotReaders(facts, kept.strategy.layers, workers);
  if (!why.empty()) return Wrong(kept.path, "layers: " + why);
  return kept.strategy;
}

// Checks that layers which read an input are cut by its columns if dataset_strategy says so, and
// only then.
Status CheckSlices(const Job& job, const JobFacts& facts, const Strategy& strategy) {
  HDPS_ASSIGN_OR_RETURN(const DatasetCuts cuts, DatasetCutsOf(job, strategy.workers));
  for (size_t i = 0; i < facts.layers.size() && !job.parallel.dataset_slices.empty(); ++i) {
    const LayerFacts& layer = facts.layers[i];
    const LayerSplit& split = strategy.layers[i];
    const bool numbers = layer.cut == LayerCut::kNumbers;
    const bool by_columns = numbers ? cuts.numbers : cuts.features;
    if ((layer.table.empty() && !numbers) || (split.columns > 1) == by_columns) continue;
    return Wrong("parallel.dataset_strategy",
                 ShowTuples(job.parallel.dataset_slices) + " cuts the data by " +
                     (by_columns ? "features" : "examples") + ", and in the strategy of " +
                     job.parallel.kept_strategy->path + " layer \"" + layer.name +
                     "\", which reads " + (numbers ? "numeric columns" : "rows") + ", is cut by " +
                     ShowSplit(split, strategy.workers) + "; leave one of the two out");
  }
  return {};
}

// Checks a strategy that a person wrote, which is executed as it is or refused.
Status CheckMemory(const Job& job, const JobFacts& facts, const Strategy& strategy) {
  const uint64_t limit = job.parallel.worker_memory_limit;
  const double bytes = TotalOf(facts, strategy, job.parallel.rates).memory_bytes;
  if (limit == 0 || bytes <= static_cast<double>(limit)) return {};
  return Wrong("parallel.worker_memory_limit",
               "it is " + ShowByteCount(limit) + ", and a worker would need " +
                   ShowByteCount(static_cast<uint64_t>(bytes)) +
                   "; raise it, cut more of the layers, or start more workers");
}

}  // namespace

Result<Strategy> StrategyOf(const Job& job, uint32_t workers) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.parallel_mode == ParallelMode::kStandAlone ||
      parallel.parallel_mode == ParallelMode::kData) {
    return Strategy::DataParallel(workers, job.model.layers.size());
  }
  const JobFacts facts = FactsOf(job);
  Strategy strategy;
  if (parallel.kept_strategy) {
    HDPS_ASSIGN_OR_RETURN(strategy, FromFile(*parallel.kept_strategy, facts, workers));
    HDPS_RETURN_IF_ERROR(CheckSlices(job, facts, strategy));
  } else {
    HDPS_ASSIGN_OR_RETURN(const StrategyChoices choices, ChoicesOf(job, facts, workers));
    HDPS_ASSIGN_OR_RETURN(FoundStrategy found, SearchStrategy(parallel, facts, choices, workers));
    strategy = std::move(found.strategy);
  }
  HDPS_RETURN_IF_ERROR(CheckMemory(job, facts, strategy));
  return strategy;
}

Status CheckCutTraining(const Job& job) {
  const CutConflict conflict = ConflictWithCuts(job);
  if (conflict.setting.empty()) return {};
  return Wrong(conflict.setting, conflict.problem +
                                     ", and the strategy cuts layers over workers; leave one of "
                                     "the two out");
}

std::string StrategyLine(const Job& job, const Strategy& strategy) {
  std::string how = "as the job says";
  if (job.parallel.parallel_mode == ParallelMode::kSemiAuto) {
    how = "from what the job says, by sharding_propagation";
  } else if (job.parallel.parallel_mode == ParallelMode::kAuto) {
    how = "by " + std::string(WordOf(job.parallel.search_mode));
    const std::string whole = WhyWhole(job);
    if (!whole.empty()) how = "whole layers because " + whole;
  }
  if (job.parallel.kept_strategy) {
    how = "loaded from " + job.parallel.kept_strategy->path + ", nothing was planned";
  }
  std::string cut;
  for (size_t i = 0; i < strategy.layers.size(); ++i) {
    if (strategy.layers[i] == OwnRowsSplit(strategy.workers)) continue;
    cut += (cut.empty() ? "" : "; ") + job.model.layers[i].name + ": " +
           ShowSplit(strategy.layers[i], strategy.workers);
  }
  return "strategy for " + std::to_string(strategy.workers) + " workers, " + how + ": " +
         (cut.empty() ? "all layers data parallel" : cut) +
         (job.parallel.choice.empty() ? "" : "; " + job.parallel.choice);
}

KeptStrategy KeptOf(const Job& job, const Strategy& strategy) {
  KeptStrategy kept;
  const JobFacts facts = FactsOf(job);
  kept.graph = GraphHash(facts);
  for (const LayerFacts& layer : facts.layers) {
    kept.names.push_back(layer.name);
    kept.kinds.push_back(layer.kind);
  }
  kept.strategy = strategy;
  return kept;
}

Status SaveStrategy(FileSystem& files, const Job& job, const Strategy& strategy) {
  if (job.parallel.strategy_save_file.empty()) return {};
  const std::string path = StrategyFileAt(files, job.parallel.strategy_save_file);
  // A path that cannot name a file is a mistake of the operator.
  const std::filesystem::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (!files.List(folder).ok()) {
    return Wrong("parallel.strategy_ckpt_save_file",
                 "\"" + job.parallel.strategy_save_file + "\": there is no folder \"" + folder +
                     "\" to write into; make it, or name another");
  }
  if (files.List(path).ok()) {
    return Wrong("parallel.strategy_ckpt_save_file",
                 "\"" + path + "\" is a folder; name another file");
  }
  const Status written = WriteStrategyFile(files, path, KeptOf(job, strategy));
  if (written.ok()) return {};
  return {written.code(), "parallel.strategy_ckpt_save_file: " + written.message()};
}

}  // namespace hdps
