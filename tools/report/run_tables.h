// What the tables of a report say, as texts: names that people use, numbers as they read them.
#pragma once

#include <string>
#include <vector>

#include "tools/report/run_files.h"

namespace hdps {

// A field of summary.json with its name for people and its value as people read it.
struct ShownField {
  std::string name, value;
};
// Those that say something: no figures of evaluations, which have a table, and no zeros.
std::vector<ShownField> ShownSummary(const RunFiles& run);
// A row a field: its name, and the value of each of the two runs.
std::vector<std::vector<std::string>> BothSummaries(const std::vector<RunFiles>& runs);

// One evaluation of a run, as a column of a table.
struct EvaluationColumn {
  const RunFiles* run = nullptr;
  bool best = false;  // That of the best step, else the last one.
  std::string head;   // "best, step 384"
};
// For each run the best evaluation, where it is known, and the last one, where that is another.
// `names` of the runs stand in front, where they have one.
std::vector<EvaluationColumn> EvaluationColumns(const std::vector<RunFiles>& runs,
                                                const std::vector<std::string>& names);
// A row a figure and set: its name, and its value in each column, or why it has none.
std::vector<std::vector<std::string>> EvaluationRows(const std::vector<EvaluationColumn>& columns);

// Key, value of the one, value of the other. Where it is known what persons gave, only settings
// that one of them did; of a run whose person did not, the default stands there.
std::vector<std::vector<std::string>> DifferentSettings(const RunFiles& a, const RunFiles& b);

}  // namespace hdps
