// Tells which tables of a job share the rows of a server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

struct Job;

// Tables that are read by the same features have rows for the same keys at the same time, so a
// server keeps both parts of a row under one entry of its index: the wide and the deep part of a
// model, for example. They must also agree in what decides when a row comes and goes and where it
// is; dims, optimizers, formats and schedules may differ.
//
// Returns for each table the number of the first table that it shares rows with; its own number if
// there is none before it. A function of the job alone. cluster.join_tables = false: none share.
std::vector<uint32_t> TablesThatShareRows(const Job& job);

// Returns whether any tables would share rows if the setting did not keep them from it.
bool HasTablesToJoin(const Job& job);

// Returns a sentence for each pair of tables that are read by the same features and yet keep their
// rows apart: which, and why.
std::vector<std::string> TablesKeptApart(const Job& job);

}  // namespace hdps
