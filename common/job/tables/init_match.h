// Tells what of another job's rows and dense weights a new job begins with (--init).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct Job;

// What became of one table or dense tensor, for the operator.
struct TakenLine {
  std::string name, of_job, of_source;  // Forms, such as "dim 16"; "-" where it is not.
  std::string result;                   // "taken", or why it begins anew.
  bool taken = false;
};
// Returns the lines as a table, one text each; names are escaped.
std::vector<std::string> TakenText(const std::vector<TakenLine>& lines);

// Pairs of what a job and the source of its first rows have in common.
struct InitMatch {
  struct Table {
    TableId to, from;
    bool state = false;  // Both have the same rule, so its state comes along.
  };
  std::vector<Table> tables;             // By `to`; the dense one only if a tensor is taken.
  std::map<uint32_t, uint32_t> tensors;  // Number of a dense tensor in the source: in the job.
  std::vector<TakenLine> lines;          // Tables, then tensors, then what nothing has taken.
  bool any() const { return !tables.empty(); }
  std::vector<uint32_t> TakenTensors() const;  // Their numbers in the job, ascending.
};

// Compares tables by name, dim and cut, and dense tensors by name and shape. Requires: both jobs
// were checked.
InitMatch MatchInit(const Job& job, const Job& source);

}  // namespace hdps
