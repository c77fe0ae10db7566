// Chooses where the dense layers and the most frequent rows of a job are kept: the exchange, the
// cuts and the kept rows that together take the least time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/given_job.h"
#include "common/job/job_file.h"
#include "common/parallel/step_rates.h"
#include "common/planning/strategy_search.h"

namespace hdps {

// The cost is that of the slowest worker, by the rates of the job.
struct Placement {
  Strategy strategy;
  std::vector<uint32_t> kept;  // Index of the option of each of the groups of tables.
  double seconds = 0;          // Of a step: dense layers, rows, and what moves between members.
  double memory_bytes = 0;     // Of a worker, as parallel.worker_memory_limit counts it.
};

// Returns the cheapest placement under the exchange that the job has. Workers keep rows only where
// no layer is cut. Errors: those of StrategyOf().
Result<Placement> PlaceJob(const Job& job, uint32_t workers,
                           const std::vector<KeptRowsChoices>& tables);

// Says what a placement may choose besides the exchange and the cuts, and by which rates.
struct PlacementQuestion {
  std::vector<KeptRowsChoices> tables;
  std::optional<StepRates> rates;  // In place of those of the job.
};

struct PlacedJob {
  Job job;  // Its exchange is settled.
  Placement placement;
};

// Loads a job and places it. If its exchange is open, both are tried for device_num workers, or
// `workers` if the job has none, and the cheaper one is added to `*overrides`: the result is the
// job that names it. Errors: those of LoadJob() and PlaceJob(); kInvalidArgument if the exchange is
// open and the number of workers is unknown, which `workers` = 0 says.
Result<PlacedJob> LoadPlacedJob(FileSystem& files, const WrittenJob& text,
                                std::vector<std::string>* overrides, uint32_t workers,
                                DataFiles needed, const PlacementQuestion& question);

// Loads a job. Its exchange is chosen if it is open; nothing else is planned. Every process of a
// job calls this, so that all choose the same. Errors: also those of ReadWrittenJob().
Result<Job> LoadPlannedJob(FileSystem& files, const WrittenJob& text,
                           std::vector<std::string>* overrides, uint32_t workers,
                           DataFiles needed = DataFiles::kMustExist);
Result<Job> LoadPlannedJob(FileSystem& files, const std::string& path,
                           std::vector<std::string>* overrides, uint32_t workers,
                           DataFiles needed = DataFiles::kMustExist);

}  // namespace hdps
