// Makes the tables of a report as texts, with readable names and numbers.
#pragma once

#include <string>
#include <vector>

#include "tools/report/run_files.h"

namespace hdps {

// A field of summary.json with a readable name and value.
struct ShownField {
  std::string name, value;
};
// Returns the fields to show: no figures of evaluations, which have their own table, and no zeros.
std::vector<ShownField> ShownSummary(const RunFiles& run);
// Returns a row per field: its name, and its value in each of the two runs.
std::vector<std::vector<std::string>> BothSummaries(const std::vector<RunFiles>& runs);

// One evaluation of a run, as a column of a table.
struct EvaluationColumn {
  const RunFiles* run = nullptr;
  bool best = false;  // Evaluation of the best step, else the last one.
  std::string head;   // "best, step 384"
};
// Returns for each run the best evaluation, if it is known, and the last one, if it is another. The
// heads begin with the runs' `names`, unless these are empty.
std::vector<EvaluationColumn> EvaluationColumns(const std::vector<RunFiles>& runs,
                                                const std::vector<std::string>& names);
// Returns a row per figure and set: its name and its value in each column, or why there is none.
std::vector<std::vector<std::string>> EvaluationRows(const std::vector<EvaluationColumn>& columns);

// Returns key, first value and second value of each setting that differs. If both runs tell what
// their users gave, only settings that a user gave are compared; the other run's value may be a
// default.
std::vector<std::vector<std::string>> DifferentSettings(const RunFiles& a, const RunFiles& b);

}  // namespace hdps
