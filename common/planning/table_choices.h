// Lists how many rows of tables the workers could keep and how tables could be cut over the
// servers, and what that would cost by the law of the keys.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/parallel/step_rates.h"
#include "common/planning/key_law.h"
#include "common/planning/strategy_search.h"

namespace hdps {

// The keys of the data, and the cluster.
struct TableQuestion {
  std::map<std::string, ValueLaw> laws = {};  // By sparse feature.
  uint32_t servers = 1, workers = 1;
  StepRates rates = {};
};

// Returns the choices of the tables that have the same settings: all those of a recipe, or each of
// a graph. Only settings that the job leaves open are chosen (parallel.open_settings), only for
// tables whose features all have laws, and only if `fits` holds for the job with these settings:
//   kept rows  powers of ten from 100 to a tenth of the values, at most a million;
//   cuts       that save two percent of the rows' time or more beside the spread by hash: by
//              features, in equal parts or in those that even out the servers' loads, and by
//              columns, in powers of two. Tables whose rows workers keep stay as they are cut.
std::vector<TableChoices> TableChoicesOf(
    const Job& job, const TableQuestion& question,
    const std::function<bool(const std::vector<std::string>& settings)>& fits);

// Returns the tables that choice number `choice` is about, as a range of positions in job.tables.
struct TablesOfChoice {
  size_t begin = 0, end = 0;
};
TablesOfChoice TablesOf(const Job& job, size_t choice);

// Returns the rates of members that a network connects, each on a machine of its own: servers share
// out the rows of all workers. 0 bytes a second: all are on one machine.
StepRates OverNetwork(StepRates rates, double bytes_per_second, double round_trip_us,
                      uint32_t servers, uint32_t workers);

}  // namespace hdps
