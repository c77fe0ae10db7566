// Lists how many rows the workers could keep, and what that would cost, by the law of the keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/parallel/step_rates.h"
#include "common/planning/strategy_search.h"
#include "tools/plan/job_shape.h"

namespace hdps {

// The keys of the data, and the cluster.
struct KeptRowsQuestion {
  double rows = 0, zipf = 1.05;  // Distinct keys, and the exponent of their frequency by rank.
  uint32_t workers = 1;
  StepRates rates = {};
};

// Returns the choices of each setting of kept rows: one for all tables of a recipe, one for each
// table of a graph. Powers of ten from 100 to a tenth of the rows are tried, but only the job's own
// number where it gives one, and none where `fits` is false for a setting such as
// "model.vocab_cache_size=100".
std::vector<KeptRowsChoices> KeptRowsOf(const Job& job, const JobShape& shape,
                                        const KeptRowsQuestion& question,
                                        const std::function<bool(const std::string&)>& fits);

// Returns the tables that the choices are about: those of the shape from `begin` to `end`.
struct TablesOfChoice {
  size_t begin = 0, end = 0;
};
TablesOfChoice TablesOf(const Job& job, const JobShape& shape, size_t choice);

// Returns the rates of members that a network connects, each on a machine of its own: servers share
// out the rows of all workers. 0 bytes a second: all are on one machine.
StepRates OverNetwork(StepRates rates, double bytes_per_second, double round_trip_us,
                      uint32_t servers, uint32_t workers);

}  // namespace hdps
