// Applies rules of thumb, each with a reason for the report.
#include "tools/prepare/columns/column_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/show_number.h"
#include "tools/prepare/columns/column_names.h"
#include "tools/prepare/columns/whole_shape.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr double kOwnValueShare = 0.95;  // Above, nearly every row has its own value.
constexpr double kFewValues = 12;  // Whole numbers with at most so many values are categories.
// Up to so many values may be codes if the name tells nothing more.
constexpr double kCodesMax = 64;
constexpr double kRecurs = 5;  // Mean rows per value if values recur.
constexpr double kOften = 30;  // Mean rows per value if each value can be learned by itself.
constexpr double kBucketValuesMin = 8;  // Numbers with more values get buckets.
constexpr double kSkewed = 2;
constexpr double kLogBucketsMax =
    1000;  // Skewed counts up to this or more get buckets of powers of 2.
constexpr double kPartsCells = 0.02;   // Share of cells with a separator, at least.
constexpr uint64_t kRowsMin = 100;     // Rows needed for rules about shares.
constexpr double kForeignShare = 0.9;  // Share of cells of one kind that is no accident.
constexpr double kStrayShare = 0.1;    // Share of texts among numbers that may be mistakes.

// Rounds to six digits: a fit does not mean more, and people do not read more.
double Rounded(double value) { return std::strtod(ShowNumber("%.6g", value).c_str(), nullptr); }

std::string Named(const std::string& name) { return "column '" + Printable(name) + "'"; }

class ColumnPlanner {
 public:
  ColumnPlanner(const ColumnProfile& column, const std::string& missing)
      : column_(column),
        missing_(column.missing.contains(missing) ? column.missing.at(missing) : 0),
        filled_(static_cast<double>(column.filled() - missing_)),
        distinct_(column.distinct.distinct() - (missing_ > 0 ? 1 : 0)),
        numbers_(static_cast<double>(column.numbers.count())),
        own_(filled_ >= kRowsMin && distinct_ >= kOwnValueShare * filled_) {
    plan_.spec.name = column.name;
  }

  Result<ColumnPlan> Plan() {
    if (filled_ == 0) return Skip("all cells are missing");
    if (distinct_ <= 1) return Skip("all cells are '" + column_.frequent.Top(1)[0].text + "'");
    if (numbers_ >= filled_) return PlanNumber();
    if (const CellKind* kind = ForeignKind()) return PlanForeign(*kind);
    if (PlanParts(/*asked=*/false)) return plan_;
    if (own_) return Skip("an id: nearly every row has a value of its own");
    plan_.spec.type = ColumnType::kCategorical;
    plan_.why = "texts";
    if (numbers_ > 0) plan_.why += ", some of which are numbers";
    if (numbers_ >= (1 - kStrayShare) * filled_ && column_.missing.empty() && !column_.whole) {
      plan_.look_at = Named(column_.name) + ": " + ShowNumber("%.1f%%", 100 * numbers_ / filled_) +
                      " of the cells are numbers; it counts as texts because of the others";
    }
    return plan_;
  }

  // Checks only that the user's choice is possible.
  Result<ColumnPlan> PlanAs(ColumnType type) {
    plan_.why = "as you say";
    plan_.spec.type = type;
    if (type == ColumnType::kNumeric || type == ColumnType::kWeight) {
      if (numbers_ < filled_) return NoNumbers(type);
      if (type == ColumnType::kWeight) return PlanWeight();
      FillNumber("as you say");
    }
    if (type == ColumnType::kMulti && !PlanParts(/*asked=*/true)) {
      return Status(Code::kInvalidArgument,
                    "--multi: no cell of " + Named(column_.name) +
                        " has a bar, a semicolon, a comma, a slash or a blank between values: "
                        "expected several values a cell");
    }
    return plan_;
  }

 private:
  ColumnPlan Skip(const std::string& why) {
    plan_.spec.type = ColumnType::kSkip;
    plan_.why = why;
    return plan_;
  }
  ColumnPlan Categorical(const std::string& why) {
    plan_.spec.type = ColumnType::kCategorical;
    plan_.why = why;
    return plan_;
  }
  ColumnPlan Numeric(const std::string& why) {
    FillNumber(why);
    return plan_;
  }

  Result<ColumnPlan> PlanWeight() {
    if (column_.filled() < column_.cells || missing_ > 0) {
      return Status(Code::kInvalidArgument, column_.first_missing + ": --weight: no weight in " +
                                                Named(column_.name) +
                                                ": expected a number from 0 on in every row");
    }
    if (column_.numbers.min() >= 0) return plan_;
    return Status(Code::kInvalidArgument, "--weight: " + Named(column_.name) + " goes down to " +
                                              ShowNumber("%g", column_.numbers.min()) +
                                              ": expected numbers from 0 on");
  }

  // Returns the kind of nearly all cells that are not plain numbers.
  const CellKind* ForeignKind() const {
    const CellKind* most = nullptr;
    uint64_t count = 0;
    for (const auto& [kind, cells] : column_.foreign) {
      if (cells.count > count) most = &kind;
      count = std::max(count, cells.count);
    }
    if (most == nullptr) return nullptr;
    const bool number = *most != CellKind::kDate && *most != CellKind::kList;
    const double all = static_cast<double>(count) + (number ? numbers_ : 0);
    return all >= kForeignShare * filled_ ? most : nullptr;
  }

  Result<ColumnPlan> PlanForeign(CellKind kind) {
    const ForeignCells& cells = column_.foreign.at(kind);
    const std::string what(WordOf(kind));
    if (kind == CellKind::kDate) {
      plan_.look_at =
          Named(column_.name) + " has " + what + ", and is left out: " + RemedyFor(kind);
      return Skip("dates: those to come are none of these");
    }
    return Status(Code::kInvalidArgument,
                  cells.place + ": '" + Printable(cells.first) + "' in " + Named(column_.name) +
                      ": " + what + " are not read (" +
                      ShowWhole(static_cast<double>(cells.count)) + " cells): " + RemedyFor(kind) +
                      ", or say --categorical=" + column_.name +
                      " to take them as texts, or --skip=" + column_.name);
  }

  Status NoNumbers(ColumnType type) const {
    std::string first;
    for (const auto& value : column_.frequent.Top(1024)) {
      const bool missing = std::ranges::find(kMissingTexts, value.text) != std::end(kMissingTexts);
      if (!first.empty() || missing || ParseNumber(value.text)) continue;
      first = value.text;
    }
    return {Code::kInvalidArgument,
            "--" + std::string(WordOf(type)) + ": cells of " + Named(column_.name) +
                " are no numbers" + (first.empty() ? "" : ", such as '" + Printable(first) + "'") +
                ": expected a column of numbers"};
  }

  ColumnPlan PlanNumber() {
    const NameHint hint = HintOf(column_.name);
    if (!column_.whole) {
      return Numeric(hint == NameHint::kQuantity ? "numbers, by name and values" : "numbers");
    }
    if (column_.beyond_exact > 0) {
      return own_ ? Skip("an id: nearly every row has a value of its own")
                  : Categorical("whole numbers beyond 2^53 that come again: they name something");
    }
    const bool identity = hint == NameHint::kIdentity || column_.leading_zeros > 0;
    if (own_ && (identity || column_.rising)) {
      return Skip("an id: nearly every row has a value of its own");
    }
    if (CountsUp()) return Skip("an id: it counts the rows");
    if (distinct_ <= kFewValues) return Categorical("few whole numbers");
    if (IsMoment(hint)) return Skip("moments in time: those to come are none of these");
    if (hint == NameHint::kQuantity) return Numeric("numbers, by name an amount or a count");
    if (hint == NameHint::kIdentity)
      return Categorical("whole numbers that name something, by name");
    if (column_.leading_zeros > 0) return Categorical("codes: some begin with 0");
    return PlanByShape(hint);
  }

  bool CountsUp() const {
    const Moments& numbers = column_.numbers;
    return column_.rising && distinct_ > kFewValues && filled_ == numbers_ &&
           numbers.max() - numbers.min() + 1 == numbers_;
  }

  bool IsMoment(NameHint hint) const {
    constexpr double kSeconds = 9.4e8, kSecondsMax = 4.1e9, kThousand = 1000;
    const double least = column_.numbers.min(), most = column_.numbers.max();
    const bool seconds = least >= kSeconds && most <= kSecondsMax;
    const bool millis = least >= kSeconds * kThousand && most <= kSecondsMax * kThousand;
    return (seconds || millis) && (hint == NameHint::kMoment || most < 2 * least) &&
           distinct_ > kCodesMax;
  }

  // Plans whole numbers whose name does not tell what they are.
  ColumnPlan PlanByShape(NameHint hint) {
    const WholeShape shape = ShapeOfWhole(column_.sample.numbers());
    const bool skewed = column_.numbers.skewness() > kSkewed && column_.numbers.min() >= 0;
    const bool from_start = column_.numbers.min() <= 1;  // Counts begin at 0 or 1.
    const bool unknown = shape == WholeShape::kUnknown;
    const bool falling = shape == WholeShape::kFalling || (unknown && skewed && from_start);
    if (hint == NameHint::kCode && !falling) {
      return own_ ? Numeric("numbers") : Categorical("codes, by name");
    }
    const bool recurs = filled_ >= kRecurs * distinct_;
    if (shape == WholeShape::kSpread && filled_ >= 2 * distinct_) {
      return Categorical("whole numbers all over a wide range that come again, as hashes do");
    }
    if (recurs && (shape == WholeShape::kJagged || shape == WholeShape::kFlat)) {
      return Categorical("whole numbers that come again, whatever their neighbours do, as ids do");
    }
    if (recurs && distinct_ <= kCodesMax && unknown && !falling) {
      return Categorical("few whole numbers that come again and again");
    }
    if (unknown && !from_start && filled_ >= kOften * distinct_) {
      return Categorical("whole numbers here and there, each of which comes often");
    }
    if (recurs && falling) {
      plan_.look_at = Named(column_.name) +
                      " is taken as a number: small values come most, as of counts; if it names "
                      "something, say --categorical=" +
                      column_.name;
      return Numeric("counts: the least come most");
    }
    return Numeric(shape == WholeShape::kSmooth
                       ? "numbers: neighbours come about as often, as measured values do"
                       : "numbers");
  }

  void FillNumber(const std::string& why) {
    plan_.spec.type = ColumnType::kNumeric;
    const Moments& numbers = column_.numbers;
    const bool skewed = numbers.skewness() > kSkewed && numbers.min() >= 0;
    plan_.why = why;
    if (skewed) {
      plan_.spec.transform = Transform::kLog1p;
      plan_.why += "; skewed, from 0 on";
    } else {
      plan_.spec.transform = Transform::kStandardize;
      plan_.spec.mean = Rounded(numbers.mean());
      plan_.spec.scale = Rounded(numbers.deviation());
    }
    if (distinct_ >= kBucketValuesMin) PlanBuckets(skewed);
  }

  void PlanBuckets(bool skewed) {
    const double most = static_cast<double>(column_.frequent.Top(1)[0].count);
    plan_.log_buckets =
        skewed && column_.whole && column_.numbers.max() >= kLogBucketsMax && most < filled_ / 2;
    plan_.boundaries = plan_.log_buckets ? LogBoundaries(column_.numbers.max())
                                         : QuantileBoundaries(column_.sample.numbers());
  }

  // Plans several values per cell, if the parts recur and whole cells do not. Blanks separate only
  // numbers, because a text of several words is one value.
  bool PlanParts(bool asked) {
    const PartsProfile* best = nullptr;
    for (const auto& [separator, parts] : column_.parts) {
      const bool many = static_cast<double>(parts.cells) >= kPartsCells * filled_;
      const bool recur = 2 * parts.distinct.distinct() <= static_cast<double>(parts.parts) &&
                         parts.distinct.distinct() <= distinct_;
      const bool words = separator == ' ' && 10 * parts.numbers < 9 * parts.parts;
      const bool fits = asked || (many && recur && !words);
      if (!fits || (best != nullptr && parts.parts <= best->parts)) continue;
      best = &parts;
      plan_.spec.separator = std::string(1, separator);
    }
    if (best == nullptr) return false;
    plan_.spec.type = ColumnType::kMulti;
    plan_.why = std::string(asked ? "as you say: " : "") + "several values a cell, between '" +
                plan_.spec.separator + "'";
    return true;
  }

  const ColumnProfile& column_;
  const uint64_t missing_;
  const double filled_, distinct_, numbers_;
  const bool own_;  // Nearly every row has its own value.
  ColumnPlan plan_;
};

}  // namespace

Result<ColumnPlan> PlanColumn(const ColumnProfile& column, const std::string& missing,
                              std::optional<ColumnType> wanted) {
  ColumnPlanner planner(column, missing);
  return wanted ? planner.PlanAs(*wanted) : planner.Plan();
}

std::vector<double> QuantileBoundaries(std::vector<double> sample) {
  constexpr size_t kBuckets = 20;
  if (sample.empty()) return {};
  std::ranges::sort(sample);
  const double least = sample.front();
  std::vector<double> bounds;
  // A value of half of the rows or more gets a bucket of its own.
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

}  // namespace hdps
