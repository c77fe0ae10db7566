// Generates a click log of Criteo's shape from a seed. A planted teacher draws its labels, so the
// best possible AUC is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/synthetic/synthetic_teacher.h"
#include "tools/synthetic/zipf.h"

namespace hdps {

struct SyntheticLogSpec {
  uint64_t rows = 100000;
  uint64_t eval_rows = 20000;
  uint32_t numeric = 13;       // At most 13; the other columns stay empty.
  uint32_t categorical = 26;   // At most 26; the other columns stay empty.
  uint64_t vocabulary = 1000;  // Values a categorical field can have, 1 to 2^32.
  double zipf = 1.05;          // Exponent of the values' frequency by rank; 0: uniform.
  uint64_t seed = 1;
  TeacherFamily family = TeacherFamily::kLinear;
  double signal = 1.5;    // Standard deviation of the logit.
  double ctr = 0.25;      // Mean probability of label 1.
  double noise = 0;       // Share of labels that are drawn with probability `ctr` instead.
  double missing = 0.02;  // Share of empty cells, for numbers and categories alike.
};

struct SyntheticRow {
  static constexpr int64_t kNoNumber = -1;
  // [numeric]: counts from 0, or kNoNumber.
  std::vector<int64_t> numbers;
  // [categorical]: rank by frequency; spec.vocabulary: missing.
  std::vector<uint64_t> values;
  double probability = 0;  // Probability of label 1, given the features.
  bool label = false;
};

// The rows of a log, each computable on its own.
class SyntheticLog {
 public:
  explicit SyntheticLog(const SyntheticLogSpec& spec);
  // Computes row `index`. Rows are independent but for the teacher.
  void RowAt(uint64_t index, SyntheticRow* row) const;
  const SyntheticLogSpec& spec() const { return spec_; }

 private:
  // Draws the features; returns the number, uniform in [0, 1), that decides the row's label.
  double DrawFeatures(uint64_t index, SyntheticRow* row) const;
  void Calibrate();
  double LogitOf(const SyntheticRow& row) const;
  struct Parts {
    double linear, interaction;
  };
  Parts PartsOf(const SyntheticRow& row) const;

  SyntheticLogSpec spec_;
  Teacher teacher_;
  Zipf zipf_;
  // log1p of number j is roughly normal with this mean and deviation.
  std::vector<double> number_mean_, number_deviation_;
  // logit = bias_ + linear_factor_ * linear + interaction_factor_ * interaction.
  double linear_factor_ = 0, interaction_factor_ = 0, bias_ = 0;
};

// Appends the row as a line in Criteo's layout, with its line end.
void AppendCriteoLine(const SyntheticRow& row, uint64_t vocabulary, std::string* text);

// Figures of the teacher itself on the evaluation rows.
struct BestReachable {
  double auc = 0;           // AUC of the true probabilities on the drawn labels.
  double expected_auc = 0;  // Its mean over all ways to draw the labels.
  double logloss = 0;
  double ctr = 0;
};

// Writes DIR/train.tsv and DIR/eval.tsv. A kInvalidArgument names the field of the spec that is out
// of range.
Result<BestReachable> WriteSyntheticLog(FileSystem& files, const std::string& dir,
                                        const SyntheticLogSpec& spec);

}  // namespace hdps
