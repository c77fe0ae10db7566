// Rules of thumb, each with the reason that the report gives.
#include "tools/prepare/data_plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "common/base/show_number.h"
#include "tools/prepare/label_plan.h"

namespace hdps {
namespace {

constexpr double kOwnValueShare = 0.95;  // From here on nearly every row has its own value.
constexpr double kNumberShare = 1.0;     // All filled cells are numbers.
constexpr double kFewValues = 12;        // Whole numbers with no more are categories.
constexpr double kBucketValuesMin = 8;   // Buckets are made of numbers with more.
constexpr double kSkewed = 2;
constexpr double kLogBucketsMax =
    1000;                             // Skewed counts that go so far have buckets of powers of 2.
constexpr double kPartsCells = 0.02;  // Of the cells: so many have a separator.
constexpr uint64_t kRowsMin = 100;    // For rules about shares of rows.
constexpr double kManyKeys = 100000;

// Six digits: what a fit from data means, and what a person reads.
double Rounded(double value) { return std::strtod(ShowNumber("%.6g", value).c_str(), nullptr); }

bool LooksLikeId(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower == "id" || lower.ends_with("_id") || lower.ends_with("uuid") ||
         lower.ends_with("-id") || (name.ends_with("Id") || name.ends_with("ID"));
}

// The missing text that most cells have.
std::string MissingText(const DataProfile& profile) {
  std::map<std::string, uint64_t> counts;
  for (const ColumnProfile& column : profile.columns) {
    for (const auto& [text, count] : column.missing) counts[text] += count;
  }
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return most == counts.end() ? "" : most->first;
}

class ColumnPlanner {
 public:
  ColumnPlanner(const ColumnProfile& column, const std::string& missing)
      : column_(column),
        missing_(column.missing.contains(missing) ? column.missing.at(missing) : 0),
        filled_(static_cast<double>(column.filled() - missing_)),
        distinct_(column.distinct.distinct() - (missing_ > 0 ? 1 : 0)) {
    plan_.spec.name = column.name;
  }

  ColumnPlan Plan() {
    if (filled_ == 0) return Skip("all cells are missing");
    if (distinct_ <= 1) return Skip("all cells are '" + column_.frequent.Top(1)[0].text + "'");
    const bool numbers = static_cast<double>(column_.numbers.count()) >= kNumberShare * filled_;
    const bool own = filled_ >= kRowsMin && distinct_ >= kOwnValueShare * filled_;
    if (numbers) return PlanNumber(own);
    if (PlanParts()) return plan_;
    if (own) return Skip("an id: nearly every row has a value of its own");
    plan_.spec.type = ColumnType::kCategorical;
    plan_.why = "texts";
    if (column_.numbers.count() > 0) plan_.why += ", some of which are numbers";
    return plan_;
  }

 private:
  ColumnPlan Skip(const std::string& why) {
    plan_.spec.type = ColumnType::kSkip;
    plan_.why = why;
    return plan_;
  }

  ColumnPlan PlanNumber(bool own) {
    const bool id = column_.whole && LooksLikeId(column_.name);
    if (own && (id || (column_.whole && column_.rising))) {
      return Skip("an id: nearly every row has a value of its own");
    }
    if (id || (column_.whole && distinct_ <= kFewValues)) {
      plan_.spec.type = ColumnType::kCategorical;
      plan_.why = id ? "whole numbers that name something" : "few whole numbers";
      return plan_;
    }
    plan_.spec.type = ColumnType::kNumeric;
    const Moments& numbers = column_.numbers;
    const bool skewed = numbers.skewness() > kSkewed && numbers.min() >= 0;
    if (skewed) {
      plan_.spec.transform = Transform::kLog1p;
      plan_.why = "skewed numbers from 0 on";
    } else {
      plan_.spec.transform = Transform::kStandardize;
      plan_.spec.mean = Rounded(numbers.mean());
      plan_.spec.scale = Rounded(numbers.deviation());
      plan_.why = "numbers";
    }
    if (distinct_ >= kBucketValuesMin) PlanBuckets(skewed);
    return plan_;
  }

  void PlanBuckets(bool skewed) {
    const double most = static_cast<double>(column_.frequent.Top(1)[0].count);
    plan_.log_buckets =
        skewed && column_.whole && column_.numbers.max() >= kLogBucketsMax && most < filled_ / 2;
    plan_.boundaries = plan_.log_buckets ? LogBoundaries(column_.numbers.max())
                                         : QuantileBoundaries(column_.sample.numbers());
  }

  // Several values a cell: their parts recur as whole cells do not.
  bool PlanParts() {
    const PartsProfile* best = nullptr;
    for (const auto& [separator, parts] : column_.parts) {
      const bool many = static_cast<double>(parts.cells) >= kPartsCells * filled_;
      const bool recur = 2 * parts.distinct.distinct() <= static_cast<double>(parts.parts) &&
                         parts.distinct.distinct() <= distinct_;
      if (!many || !recur || (best != nullptr && parts.parts <= best->parts)) continue;
      best = &parts;
      plan_.spec.separator = std::string(1, separator);
    }
    if (best == nullptr) return false;
    plan_.spec.type = ColumnType::kMulti;
    plan_.why = "several values a cell, between '" + plan_.spec.separator + "'";
    return true;
  }

  const ColumnProfile& column_;
  const uint64_t missing_;
  const double filled_, distinct_;
  ColumnPlan plan_;
};

void PlanColumns(const DataProfile& train, DataPlan* plan) {
  const bool csv = train.layout.format == DataFormat::kCsv;
  for (size_t c = 0; c < train.columns.size(); ++c) {
    if (c == plan->label) {
      plan->columns.push_back({});
    } else if (csv) {
      plan->columns.push_back(ColumnPlanner(train.columns[c], plan->missing).Plan());
    } else {
      const bool number = train.layout.format == DataFormat::kCriteo && c <= 13;
      ColumnPlan entry;
      entry.spec.type = number ? ColumnType::kNumeric : ColumnType::kCategorical;
      entry.why = "by the format";
      if (number) {
        entry.spec.transform = Transform::kLog1p;
        const bool buckets = train.columns[c].distinct.distinct() >= kBucketValuesMin;
        if (buckets) entry.boundaries = QuantileBoundaries(train.columns[c].sample.numbers());
      }
      plan->columns.push_back(entry);
    }
    plan->columns.back().spec.name = train.columns[c].name;
  }
}

void CountKeys(const DataProfile& train, DataPlan* plan) {
  for (size_t c = 0; c < train.columns.size(); ++c) {
    const ColumnPlan& column = plan->columns[c];
    const auto buckets = static_cast<double>(column.boundaries.size() + 1);
    if (!column.boundaries.empty()) {
      plan->keys += buckets;
      plan->keys_twice += buckets;
    }
    const DistinctValues* distinct = &train.columns[c].distinct;
    if (column.spec.type == ColumnType::kMulti) {
      distinct = &train.columns[c].parts.at(column.spec.separator[0]).distinct;
    } else if (column.spec.type != ColumnType::kCategorical) {
      continue;
    }
    plan->keys += distinct->distinct();
    plan->keys_twice += distinct->AtLeast(2);
  }
  plan->admit_twice = plan->keys >= kManyKeys && 2 * plan->keys_twice < plan->keys;
}

// A number that is a missing text of another kind than data.missing makes its row a bad one.
void NoteMissingTexts(const DataProfile& train, DataPlan* plan) {
  for (size_t c = 0; c < train.columns.size(); ++c) {
    if (plan->columns[c].spec.type != ColumnType::kCategorical || c == plan->label) continue;
    for (const auto& [text, count] : train.columns[c].missing) {
      if (text == plan->missing || train.columns[c].numbers.count() == 0) continue;
      plan->notes.push_back("column '" + train.columns[c].name +
                            "': " + ShowWhole(static_cast<double>(count)) + " cells are '" + text +
                            "', and a job knows one text for missing cells, '" + plan->missing +
                            "': the column counts as texts");
    }
  }
}

}  // namespace

std::vector<double> QuantileBoundaries(std::vector<double> sample) {
  constexpr size_t kBuckets = 20;
  if (sample.empty()) return {};
  std::ranges::sort(sample);
  const double least = sample.front();
  std::vector<double> bounds;
  // A value of half of the rows or more has a bucket of its own.
  const double middle = sample[sample.size() / 2];
  const auto [from, to] = std::ranges::equal_range(sample, middle);
  if (2 * static_cast<size_t>(to - from) >= sample.size()) {
    bounds.push_back(middle);
    if (to != sample.end()) bounds.push_back(*to);
    sample.erase(from, to);
  }
  for (size_t b = 1; b < kBuckets && !sample.empty(); ++b) {
    bounds.push_back(sample[b * sample.size() / kBuckets]);
  }
  std::ranges::sort(bounds);
  const auto [repeated, end] = std::ranges::unique(bounds);
  bounds.erase(repeated, end);
  std::erase_if(bounds, [least](double bound) { return bound <= least; });
  return bounds;
}

std::vector<double> LogBoundaries(double max) {
  constexpr size_t kBoundariesMax = 24;
  std::vector<double> bounds;
  for (double bound = 1; bound <= max && bounds.size() < kBoundariesMax; bound *= 2) {
    bounds.push_back(bound);
  }
  return bounds;
}

Result<DataPlan> PlanData(const DataProfile& train, const DataProfile* eval,
                          const std::string& label) {
  if (train.rows == 0) {
    return Status(Code::kInvalidArgument, train.files[0] + ": there is no row in this file");
  }
  DataPlan plan;
  HDPS_ASSIGN_OR_RETURN(LabelPlan of_label, PlanLabel(train, eval, label));
  plan.label = of_label.column;
  plan.notes = of_label.notes;
  plan.missing = MissingText(train);
  PlanColumns(train, &plan);
  ColumnPlan& column = plan.columns[plan.label];
  column.spec.type = ColumnType::kLabel;
  column.spec.positive = of_label.positive;
  column.why =
      of_label.positive.empty() ? "numbers" : "1 where it is '" + of_label.positive[0] + "'";
  plan.positive_share = static_cast<double>(of_label.positives) /
                        static_cast<double>(of_label.positives + of_label.negatives);
  plan.bad_rows = train.ragged_rows + of_label.missing;
  if (eval != nullptr) {
    const ColumnProfile& there = eval->columns[plan.label];
    plan.eval_bad_rows = eval->ragged_rows + there.empty;
    for (const auto& [text, count] : there.missing) plan.eval_bad_rows += count;
  }
  CountKeys(train, &plan);
  NoteMissingTexts(train, &plan);
  if (train.ragged_rows > 0) {
    plan.notes.push_back(ShowWhole(static_cast<double>(train.ragged_rows)) +
                         " rows have another number of cells; the first: " + train.first_ragged);
  }
  if (of_label.missing > 0) {
    plan.notes.push_back(ShowWhole(static_cast<double>(of_label.missing)) + " rows have no label");
  }
  if (plan.bad_rows + plan.eval_bad_rows > 0) {
    plan.notes.push_back("data.max_bad_rows lets these rows pass; look whether that is right");
  }
  return plan;
}

}  // namespace hdps
