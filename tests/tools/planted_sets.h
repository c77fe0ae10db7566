// Small planted sets of every kind, to see where the defaults of a recipe lead.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/platform/random.h"

namespace hdps {

// What of a row decides on its label, and its columns.
struct PlantedRow {
  double logit = 0;  // Of label 1.
  std::vector<double> numbers;
  uint64_t a = 0, b = 0;    // Categories.
  std::vector<uint64_t> m;  // Some of the values that `a` has.
};

// Rows that a known function of their columns made. Every set has the columns y (label), z (one
// more, 1 only where y is), n1, n2, ... (numbers), a, b (categories) and m (several of a's values).
struct PlantedSet {
  std::string name;
  uint64_t rows = 0;
  bool linear = false;  // The logit is a sum of a term a column.
  PlantedRow (*draw)(Random&) = nullptr;
  bool numbers_alone = false;      // Decide: categories tell nothing.
  const char* transform = "none";  // Of the numbers, as their data asks for it.
  uint64_t different = 0;          // So many different rows, which repeat; 0: each is drawn anew.
};

const std::vector<PlantedSet>& PlantedSets();

// Rows of a set as csv, and what is known of their labels: the best AUC and logloss that a model
// can be expected to reach on them, and the logloss of a constant, the mean label of `base`.
struct PlantedRows {
  std::string csv;
  double mean_label = 0;
  double best_auc = 0, best_logloss = 0;
  double ConstantLogloss(double base) const;
};
PlantedRows DrawRows(const PlantedSet& set, uint64_t count, uint64_t seed);

// data.columns of the set's csv; `tasks`: z is a label too, else it is passed over.
nlohmann::json ColumnsOf(const PlantedSet& set, bool tasks);

}  // namespace hdps
