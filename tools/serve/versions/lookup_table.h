// Finds the table of a request for rows, and checks that a feature has rows there.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

struct Job;

// kInvalidArgument if the job has no table of that name with rows of features; it lists those there
// are.
Result<TableId> TableOfLookup(const Job& job, const std::string& name);

// Features that do not read the table have no rows there, whatever their values: kInvalidArgument
// lists those that do.
Status CheckReads(const Job& job, const std::string& table, const std::string& feature);

}  // namespace hdps
