// Chooses where the dense layers and the rows of a job are kept: the exchange, the cuts of layers
// and tables and the kept rows that together take the least time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_file.h"
#include "common/parallel/step_rates.h"
#include "common/planning/strategy_search.h"
#include "common/platform/file_system.h"

namespace hdps {

// The cost is that of the slowest worker, by the rates of the job.
struct Placement {
  Strategy strategy;
  std::vector<TableOption> tables;  // What each of the groups of tables has.
  double seconds = 0;       // Of a step: dense layers, rows, and what moves between members.
  double memory_bytes = 0;  // Of a worker, as parallel.worker_memory_limit counts it.
};

// Returns the cheapest placement under the exchange that the job has. Workers keep rows only where
// no layer is cut. Errors: those of StrategyOf().
Result<Placement> PlaceJob(const Job& job, uint32_t workers,
                           const std::vector<TableChoices>& tables);

// Returns a test whether the job at `path` can have these settings beside its overrides, for
// TableChoicesOf(). `files` must outlive it.
std::function<bool(const std::vector<std::string>& settings)> FitsJob(
    FileSystem& files, std::string path, std::vector<std::string> overrides);

// Says what a placement may choose besides the exchange and the cuts of layers, and by which rates.
struct PlacementQuestion {
  std::vector<TableChoices> tables;
  std::optional<StepRates> rates;  // In place of those of the job.
};

struct PlacedJob {
  Job job;  // What it left open is settled.
  Placement placement;
};

// Loads a job and places it for device_num workers, or `workers` if the job has none. If its
// exchange is open, both are tried, and the cheaper one is taken. It and the settings of the chosen
// options of tables are added to `*overrides`: the result is the job that names them. Errors: those
// of LoadJob() and PlaceJob(); kInvalidArgument if the number of workers is unknown, which
// `workers` = 0 says.
Result<PlacedJob> LoadPlacedJob(FileSystem& files, const std::string& path,
                                std::vector<std::string>* overrides, uint32_t workers,
                                DataFiles needed, const PlacementQuestion& question);

// Loads a job. Under auto_parallel its exchange is chosen if it is open, and if data.distinct
// counts keys the open settings of its tables are, for as many servers as workers; nothing else is
// planned. Every process of a job calls this, so that all choose the same.
Result<Job> LoadPlannedJob(FileSystem& files, const std::string& path,
                           std::vector<std::string>* overrides, uint32_t workers,
                           DataFiles needed = DataFiles::kMustExist);

}  // namespace hdps
