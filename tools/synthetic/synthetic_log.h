// A click log of Criteo's shape from a seed, with labels drawn by a planted teacher, so that the
// best AUC any model can reach on it is known.
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
  double zipf = 1.05;          // Exponent of their frequency by rank; 0: all alike.
  uint64_t seed = 1;
  TeacherFamily family = TeacherFamily::kLinear;
  double signal = 1.5;    // Standard deviation of the logit.
  double ctr = 0.25;      // Mean probability of label 1.
  double noise = 0;       // Share of the labels that a coin with `ctr` decides instead.
  double missing = 0.02;  // Share of the cells that are empty, each number and category alike.
};

struct SyntheticRow {
  static constexpr int64_t kNoNumber = -1;
  std::vector<int64_t> numbers;  // [numeric]: counts from 0, or kNoNumber.
  std::vector<uint64_t> values;  // [categorical]: rank by frequency, or spec.vocabulary: missing.
  double probability = 0;        // Of label 1, given all of the above.
  bool label = false;
};

// Any row of the log, in any order.
class SyntheticLog {
 public:
  explicit SyntheticLog(const SyntheticLogSpec& spec);
  // Rows of other indexes share nothing but the teacher.
  void RowAt(uint64_t index, SyntheticRow* row) const;
  const SyntheticLogSpec& spec() const { return spec_; }

 private:
  // Gives the chance, uniform in [0, 1), that decides the row's label.
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
  // log1p of number j is about normal with this mean and deviation.
  std::vector<double> number_mean_, number_deviation_;
  // logit = bias_ + linear_factor_ * linear + interaction_factor_ * interaction.
  double linear_factor_ = 0, interaction_factor_ = 0, bias_ = 0;
};

// The row as a line of Criteo's layout, with its end.
void AppendCriteoLine(const SyntheticRow& row, uint64_t vocabulary, std::string* text);

// What the teacher itself reaches on the evaluation rows.
struct BestReachable {
  double auc = 0;           // Of the true probabilities against the labels that were drawn.
  double expected_auc = 0;  // Mean over all ways to draw the labels.
  double logloss = 0;
  double ctr = 0;
};

// Writes DIR/train.tsv and DIR/eval.tsv. kInvalidArgument names the field of the spec that is out
// of range.
Result<BestReachable> WriteSyntheticLog(FileSystem& files, const std::string& dir,
                                        const SyntheticLogSpec& spec);

}  // namespace hdps
