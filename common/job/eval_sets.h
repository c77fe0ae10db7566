// The evaluation sets of a job and their metrics.
#pragma once

#include <string>
#include <vector>

namespace hdps {

struct DataSpec;
struct Job;

// Rows that are scored together. Invariant: they are not trained on.
struct EvalSet {
  std::string name;
  std::vector<std::string> files;
  bool held_out = false;  // Only the held-out rows of `files`, which are those of data.train.
};

inline constexpr const char* kEvalName = "eval";              // For the files of data.eval.
inline constexpr const char* kValidationName = "validation";  // For the rows of validation_share.
// For figures of train.progressive, which no set has.
inline constexpr const char* kProgressiveName = "progressive";

// Returns the sets in the order of evaluation. The figures of the first set are those of the job.
// It is data.eval if given, else the rows held out by data.validation_share, else the first of
// data.eval_sets.
std::vector<EvalSet> EvalSetsOf(const DataSpec& data);

// Returns the figure by which evaluations are compared unless the job names one; empty if the model
// is another program's: the first one that it reports.
std::string UsualMetric(const Job& job);
// Returns the figures of every evaluation by their words; with several tasks as "<task>.<word>".
std::vector<std::string> MeasuredMetrics(const Job& job);

}  // namespace hdps
