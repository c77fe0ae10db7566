// The evaluation sets of a job, and the metrics that are measured on them.
#pragma once

#include <string>
#include <vector>

namespace hdps {

struct DataSpec;
struct Job;

// Rows that are scored together. Invariant: the rows of none of them are trained on.
struct EvalSet {
  std::string name;
  std::vector<std::string> files;
  bool held_out = false;  // Of `files`, which are those of data.train, the held out rows alone.
};

inline constexpr const char* kEvalName = "eval";              // Of the files of data.eval.
inline constexpr const char* kValidationName = "validation";  // Of the rows of validation_share.

// In the order in which they are evaluated. The first one's figures are the job's: those of
// data.eval, else those held out by data.validation_share, else the first of data.eval_sets.
std::vector<EvalSet> EvalSetsOf(const DataSpec& data);

// The figure by which evaluations of the job are compared where nothing says which.
std::string UsualMetric(const Job& job);
// The figures that every evaluation has, by their words; of several tasks as "<task>.<word>".
std::vector<std::string> MeasuredMetrics(const Job& job);

}  // namespace hdps
