// Draws the rows of the sets, and computes the figures of the function that labels them.
#include "tests/tools/planted_sets.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hdps {
namespace {

// Returns the effect of a category: a fixed number of about +-1.
double EffectOf(uint64_t value, uint64_t salt) {
  return 2.5 * (UnitDouble(RandomAt(salt, value)) - 0.5);
}

PlantedRow Columns(Random& random, size_t numbers, uint64_t of_a, uint64_t of_b) {
  PlantedRow row;
  for (size_t i = 0; i < numbers; ++i) row.numbers.push_back(random.Normal());
  row.a = random.Below(of_a);
  row.b = random.Below(of_b);
  for (uint64_t i = random.Below(4); i > 0; --i) row.m.push_back(random.Below(of_a));
  return row;
}

PlantedRow OneNumber(Random& random) {
  PlantedRow row = Columns(random, 1, 7, 3);
  row.logit = 0.8 * row.numbers[0];
  return row;
}

PlantedRow Numbers(Random& random) {
  PlantedRow row = Columns(random, 3, 5, 3);
  row.logit = row.numbers[0] - 0.7 * row.numbers[1] + 0.4 * row.numbers[2];
  return row;
}

PlantedRow Categories(Random& random) {
  PlantedRow row = Columns(random, 1, 10, 5);
  row.logit = EffectOf(row.a, 1) + EffectOf(row.b, 2);
  return row;
}

PlantedRow Mixed(Random& random) {
  PlantedRow row = Columns(random, 2, 8, 6);
  row.logit = 0.8 * row.numbers[0] + EffectOf(row.a, 3) + 0.5 * EffectOf(row.b, 4);
  for (const uint64_t value : row.m) row.logit += 0.3 * EffectOf(value, 5);
  return row;
}

// About three rows in a hundred have label 1.
PlantedRow Skewed(Random& random) {
  PlantedRow row = Mixed(random);
  row.logit -= 4;
  return row;
}

PlantedRow Interactions(Random& random) {
  PlantedRow row = Columns(random, 1, 8, 8);
  row.logit = 1.5 * EffectOf(8 * row.a + row.b, 6);
  return row;
}

PlantedRow RareIds(Random& random) {
  PlantedRow row = Columns(random, 1, 6, 1500);
  row.logit = EffectOf(row.a, 7) - 0.5;
  return row;
}

PlantedRow Repeated(Random& random) {
  PlantedRow row = Columns(random, 1, 40, 3);
  row.logit = row.a % 2 == 0 ? 1.4 : -1.7;
  return row;
}

// Amounts from some tens to some hundred thousands.
PlantedRow Amounts(Random& random) {
  PlantedRow row = Columns(random, 2, 5, 3);
  row.logit = 0.9 * row.numbers[0];
  for (double& number : row.numbers) number = std::exp(7 + 2 * number);
  return row;
}

PlantedRow Noise(Random& random) {
  PlantedRow row = Columns(random, 1, 4, 3);
  row.logit = -0.85;
  return row;
}

double Logloss(double probability, bool label) {
  return -std::log(label ? probability : 1 - probability);
}

double AucOf(std::vector<std::pair<double, bool>> scores) {
  std::ranges::sort(scores);
  double below = 0, won = 0, ones = 0;
  for (size_t begin = 0; begin < scores.size();) {
    size_t end = begin;
    double zeros = 0, here = 0;
    for (; end < scores.size() && scores[end].first == scores[begin].first; ++end) {
      (scores[end].second ? here : zeros) += 1;
    }
    won += here * (below + zeros / 2);
    below += zeros;
    ones += here;
    begin = end;
  }
  return won / (ones * below);
}

std::string CsvOf(const PlantedRow& row, bool y, bool z) {
  std::string line = std::to_string(y) + "," + std::to_string(z);
  for (const double number : row.numbers) {
    char text[32];
    std::snprintf(text, sizeof text, ",%.6g", number);
    line += text;
  }
  line += ",v" + std::to_string(row.a) + ",w" + std::to_string(row.b) + ",";
  for (size_t i = 0; i < row.m.size(); ++i) {
    line += (i == 0 ? "v" : "|v") + std::to_string(row.m[i]);
  }
  return line + "\n";
}

}  // namespace

const std::vector<PlantedSet>& PlantedSets() {
  static const std::vector<PlantedSet> sets = {
      {"one_number", 400, true, OneNumber, true},
      {"numbers", 2000, true, Numbers, true},
      {"categories", 1000, true, Categories},
      {"mixed", 3000, true, Mixed},
      {"skewed", 5000, true, Skewed},
      {"interactions", 4000, false, Interactions},
      {"rare_ids", 2000, true, RareIds},
      {"repeated", 200, false, Repeated, false, "none", 60},
      {"amounts", 1000, true, Amounts, true, "log1p"},
      {"noise", 400, false, Noise},
  };
  return sets;
}

double PlantedRows::ConstantLogloss(double base) const {
  return mean_label * Logloss(base, true) + (1 - mean_label) * Logloss(base, false);
}

PlantedRows DrawRows(const PlantedSet& set, uint64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<PlantedRow> pool;
  Random of_pool(MixBits(set.rows));
  for (uint64_t i = 0; i < set.different; ++i) pool.push_back(set.draw(of_pool));
  PlantedRows rows;
  std::vector<std::pair<double, bool>> scores;
  for (uint64_t i = 0; i < count; ++i) {
    const PlantedRow row = pool.empty() ? set.draw(random) : pool[random.Below(pool.size())];
    const double probability = 1 / (1 + std::exp(-row.logit));
    const bool y = random.Unit() < probability, z = y && random.Unit() < 0.4;
    rows.csv += CsvOf(row, y, z);
    rows.mean_label += y;
    rows.best_logloss += Logloss(probability, y);
    scores.emplace_back(row.logit, y);
  }
  rows.mean_label /= static_cast<double>(count);
  rows.best_logloss /= static_cast<double>(count);
  rows.best_auc = AucOf(std::move(scores));
  return rows;
}

nlohmann::json ColumnsOf(const PlantedSet& set, bool tasks) {
  nlohmann::json columns = {{{"name", "y"}, {"type", "label"}},
                            {{"name", "z"}, {"type", tasks ? "label" : "skip"}}};
  Random random(1);
  for (size_t n = 1; n <= set.draw(random).numbers.size(); ++n) {
    columns.push_back(
        {{"name", "n" + std::to_string(n)}, {"type", "numeric"}, {"transform", set.transform}});
  }
  columns.push_back({{"name", "a"}});
  columns.push_back({{"name", "b"}});
  columns.push_back({{"name", "m"}, {"type", "multi"}});
  return columns;
}

}  // namespace hdps
