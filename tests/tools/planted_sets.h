// Makes small data sets with planted labels, to check the defaults of recipes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/platform/random.h"

namespace hdps {

// The columns of a row, and the logit of its label.
struct PlantedRow {
  double logit = 0;  // Logit of label 1.
  std::vector<double> numbers;
  uint64_t a = 0, b = 0;    // Values of the categorical columns.
  std::vector<uint64_t> m;  // Some of the values of `a`.
};

// A data set whose labels come from a known function of the columns: y (label), z (a second label,
// 1 only where y is), n1, n2, ... (numbers), a, b (categories) and m (several of a's values).
struct PlantedSet {
  std::string name;
  uint64_t rows = 0;
  bool linear = false;  // The logit is a sum of one term per column.
  PlantedRow (*draw)(Random&) = nullptr;
  bool numbers_alone = false;      // The label depends on numbers only.
  const char* transform = "none";  // Transform of the numbers that fits their data.
  uint64_t different = 0;  // Number of different rows, which repeat; 0: each row is drawn anew.
};

const std::vector<PlantedSet>& PlantedSets();

// Rows of a set as csv with reference figures: the best AUC and logloss to expect from a model, and
// the logloss of a constant prediction, the mean label of `base`.
struct PlantedRows {
  std::string csv;
  double mean_label = 0;
  double best_auc = 0, best_logloss = 0;
  double ConstantLogloss(double base) const;
};
PlantedRows DrawRows(const PlantedSet& set, uint64_t count, uint64_t seed);

// Returns data.columns for the set's csv; `tasks`: z is a label too, otherwise it is skipped.
nlohmann::json ColumnsOf(const PlantedSet& set, bool tasks);

}  // namespace hdps
