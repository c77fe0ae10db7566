// Applies rules of thumb, each with a reason for the report.
#include "tools/prepare/data_plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/base/show_number.h"
#include "tools/prepare/columns/column_names.h"
#include "tools/prepare/columns/label_column.h"
#include "tools/prepare/columns/label_plan.h"
#include "tools/prepare/vocabulary_count.h"
#include "worker/data/data_description.h"

namespace hdps {
namespace {

constexpr double kBucketValuesMin = 8;  // Criteo format: numbers with more values get buckets.
constexpr double kManyKeys = 100000;
constexpr double kBadShare = 0.01;  // Share of bad rows that may pass without a setting.
constexpr uint32_t kNegatives = 4;  // Negatives per positive row.

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

// Returns the missing text that most cells have.
std::string MissingText(const DataProfile& profile) {
  std::map<std::string, uint64_t> counts;
  for (const ColumnProfile& column : profile.columns) {
    for (const auto& [text, count] : column.missing) counts[text] += count;
  }
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return most == counts.end() ? "" : most->first;
}

// Columns that the user has named, with their types.
class Wanted {
 public:
  static Result<Wanted> Make(const DataProfile& train, const DataWish& wish) {
    Wanted wanted;
    const std::vector<std::string> group(wish.group.empty() ? 0 : 1, wish.group),
        weight(wish.weight.empty() ? 0 : 1, wish.weight);
    for (const auto& [flag, names, type] :
         {std::tuple{"categorical", &wish.categorical, ColumnType::kCategorical},
          {"numeric", &wish.numeric, ColumnType::kNumeric},
          {"multi", &wish.multi, ColumnType::kMulti},
          {"skip", &wish.skip, ColumnType::kSkip},
          {"group", &group, ColumnType::kGroup},
          {"weight", &weight, ColumnType::kWeight}}) {
      for (const std::string& name : *names) {
        if (!HasNamedColumns(train.layout.format)) {
          return Mistaken("--" + std::string(flag) + "=" + name + ": columns of the format " +
                          std::string(WordOf(train.layout.format)) +
                          " are what they are: expected a csv file, or one with typed cells");
        }
        const bool known = std::ranges::any_of(
            train.columns, [&name](const ColumnProfile& column) { return column.name == name; });
        if (!known) return NoSuchColumn(train, flag, name);
        const auto [other, added] = wanted.types_.emplace(name, type);
        if (!added || name == wish.label) {
          return Mistaken("--" + std::string(flag) + "=" + name + ": the column is named by --" +
                          (added ? "label" : std::string(WordOf(other->second))) +
                          " too: expected it once");
        }
      }
    }
    return wanted;
  }

  std::optional<ColumnType> Of(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, ColumnType> types_;
};

ColumnPlan EntryPlan(const DataProfile& train, size_t c) {
  const bool number = train.layout.format == DataFormat::kCriteo && c <= 13;
  ColumnPlan entry;
  entry.spec.type = number ? ColumnType::kNumeric : ColumnType::kCategorical;
  entry.why = "by the format";
  if (number) {
    entry.spec.transform = Transform::kLog1p;
    const bool buckets = train.columns[c].distinct.distinct() >= kBucketValuesMin;
    if (buckets) entry.boundaries = QuantileBoundaries(train.columns[c].sample.numbers());
  }
  return entry;
}

ColumnPlan ListPlan() {
  ColumnPlan list;
  list.spec.type = ColumnType::kMulti;
  list.why = "a list of values";
  return list;
}

Status PlanColumns(const DataProfile& train, const Wanted& wanted, DataPlan* plan) {
  const bool by_name = HasNamedColumns(train.layout.format);
  for (size_t c = 0; c < train.columns.size(); ++c) {
    const ColumnProfile& column = train.columns[c];
    std::optional<ColumnType> type = wanted.Of(column.name);
    const bool both = plan->user != kNoColumn && plan->item != kNoColumn;
    const bool pair = both && !type && (c == plan->user || c == plan->item) &&
                      plan->task != TaskKind::kBinary && plan->task != TaskKind::kClasses;
    if (pair) type = ColumnType::kCategorical;
    if (c == plan->label) {
      plan->columns.emplace_back();
    } else if (!type && train.layout.lists.contains(column.name)) {
      plan->columns.push_back(ListPlan());
    } else if (by_name) {
      if (!type && train.layout.fractions.contains(column.name)) type = ColumnType::kNumeric;
      HDPS_ASSIGN_OR_RETURN(ColumnPlan planned, PlanColumn(column, plan->missing, type));
      plan->columns.push_back(std::move(planned));
    } else {
      plan->columns.push_back(EntryPlan(train, c));
    }
    ColumnPlan& planned = plan->columns.back();
    planned.spec.name = column.name;
    if (pair) planned.why = c == plan->user ? "the user" : "the item";
    if (!planned.look_at.empty()) plan->notes.push_back(planned.look_at);
  }
  return {};
}

// Adds keys that come often.
void AddKeys(double keys, DataPlan* plan) {
  plan->keys += keys;
  plan->keys_twice += keys;
  plan->keys_by_times.back() += keys;
}

// Adds the keys of the buckets of numbers.
void CountBuckets(DataPlan* plan) {
  for (const ColumnPlan& column : plan->columns) {
    const auto buckets = static_cast<double>(column.boundaries.size() + 1);
    if (!column.boundaries.empty()) AddKeys(buckets, plan);
  }
}

void CountKeys(const DataProfile& train, DataPlan* plan) {
  CountBuckets(plan);
  for (size_t c = 0; c < train.columns.size(); ++c) {
    const ColumnPlan& column = plan->columns[c];
    const DistinctValues* distinct = &train.columns[c].distinct;
    if (column.spec.type == ColumnType::kMulti) {
      // Lists of a file of records may have one value each.
      const auto parts = train.columns[c].parts.find(column.spec.separator[0]);
      if (parts != train.columns[c].parts.end()) distinct = &parts->second.distinct;
    } else if (column.spec.type != ColumnType::kCategorical) {
      continue;
    }
    plan->keys += distinct->distinct();
    plan->keys_twice += distinct->AtLeast(2);
    const std::vector<double> by_times = distinct->ByTimes(DataPlan::kTimesMax);
    for (size_t i = 0; i < by_times.size(); ++i) plan->keys_by_times[i] += by_times[i];
  }
  plan->admit_twice = plan->keys >= kManyKeys && 2 * plan->keys_twice < plan->keys;
}

// Notes numbers whose missing text differs from data.missing: it makes their rows bad.
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

void PlanLabelColumn(const DataProfile& train, const LabelPlan& label, DataPlan* plan) {
  if (label.column == kNoColumn) return;
  ColumnPlan& column = plan->columns[label.column];
  column.spec.name = train.columns[label.column].name;
  column.spec.type = ColumnType::kLabel;
  column.spec.positive = label.positive;
  column.spec.classes = label.classes;
  if (label.task == TaskKind::kRating) {
    column.why = "a number to come near to";
  } else if (label.task == TaskKind::kClasses) {
    column.why = ShowWhole(label.num_classes) + " classes";
  } else if (label.positive.empty()) {
    column.why = "numbers";
  } else {
    column.why = "1 where it is '" + label.positive[0] + "'";
    for (size_t i = 1; i < label.positive.size() && i < 3; ++i) {
      column.why += " or '" + label.positive[i] + "'";
    }
    if (label.positive.size() > 3) column.why += ", ...";
  }
}

// Plans a ranking, with negative examples from the items of other rows.
Status PlanRanking(const DataProfile& train, const DataWish& wish, DataPlan* plan) {
  if (plan->task != TaskKind::kPositivesOnly) return {};
  if (plan->user == kNoColumn || plan->item == kNoColumn) {
    return Mistaken(train.files[0] +
                    ": a ranking needs a column of users and one of items, of texts or whole "
                    "numbers: none has such a name; give the file a header with user and item");
  }
  plan->item_features = {train.columns[plan->item].name};
  plan->negatives = kNegatives;
  // The rating of a row is not known before.
  for (size_t c = 0; c < plan->columns.size(); ++c) {
    const std::string& name = train.columns[c].name;
    const bool named = std::ranges::find(wish.numeric, name) != wish.numeric.end() ||
                       std::ranges::find(wish.categorical, name) != wish.categorical.end();
    if (c == plan->label || named || !NamesRating(name)) continue;
    plan->columns[c] = {};
    plan->columns[c].spec.name = name;
    plan->columns[c].spec.type = ColumnType::kSkip;
    plan->columns[c].why = "a rating, which comes after what is to be foretold";
  }
  return {};
}

std::string Share(double part, double all) { return ShowNumber("%.1f%%", 100 * part / all); }

// Checks the rows that the job could not read: a few pass with a note, more are an error.
Status CheckBadRows(const DataProfile& data, uint64_t no_label, const std::string& first_no_label,
                    const DataWish& wish) {
  const uint64_t bad = data.ragged_rows + no_label;
  const auto all = static_cast<double>(data.rows + data.ragged_rows);
  const bool allowed =
      wish.max_bad_rows ? bad <= *wish.max_bad_rows : static_cast<double>(bad) <= kBadShare * all;
  if (allowed) return {};
  const bool ragged = data.ragged_rows >= no_label;
  std::string mend = ragged ? "write as many cells in every row" : "leave these rows out";
  if (data.unpaired_rows > 0) {
    mend = "write quotes inside a cell twice (\"\"), and a cell on one line";
  }
  return Mistaken((ragged ? data.first_ragged : first_no_label + ": no label") + " (" +
                  ShowWhole(static_cast<double>(bad)) + " such rows of " + ShowWhole(all) + ", " +
                  Share(static_cast<double>(bad), all) +
                  "): a job that passes over so many is not "
                  "written unasked: " +
                  mend + ", or say --max_bad_rows=" + std::to_string(bad));
}

Status PlanBadRows(const DataProfile& train, const DataProfile* eval, const LabelPlan& label,
                   const DataWish& wish, DataPlan* plan) {
  const auto first_of = [&label](const DataProfile& data) {
    return label.column == kNoColumn ? "" : data.columns[label.column].first_missing;
  };
  plan->bad_rows = train.ragged_rows + label.missing;
  HDPS_RETURN_IF_ERROR(CheckBadRows(train, label.missing, first_of(train), wish));
  if (eval != nullptr) {
    uint64_t none = 0;
    if (label.column != kNoColumn) {
      const ColumnProfile& there = eval->columns[label.column];
      none = there.empty;
      for (const auto& [text, count] : there.missing) none += count;
    }
    plan->eval_bad_rows = eval->ragged_rows + none;
    HDPS_RETURN_IF_ERROR(CheckBadRows(*eval, none, first_of(*eval), wish));
  }
  const auto whole = [](uint64_t number) { return ShowWhole(static_cast<double>(number)); };
  if (train.ragged_rows > 0) {
    plan->notes.push_back(whole(train.ragged_rows) +
                          " rows have another number of cells; the first: " + train.first_ragged);
  }
  if (label.missing > 0) {
    plan->notes.push_back(whole(label.missing) +
                          " rows have no label; the first: " + first_of(train));
  }
  if (plan->bad_rows + plan->eval_bad_rows > 0) {
    plan->notes.push_back("data.max_bad_rows lets these rows pass; look whether that is right");
  }
  if (train.header_rows > 0) {
    plan->notes.push_back("the header comes again below, in " + Counted(train.header_rows, "line") +
                          "; data.comment passes over it");
  }
  return {};
}

}  // namespace

void CountKeysOf(const CountedVocabulary& counted, DataPlan* plan) {
  plan->keys = plan->keys_twice = 0;
  std::ranges::fill(plan->keys_by_times, 0);
  plan->admit_twice = false;
  CountBuckets(plan);
  for (const ValuesOfSpace& of : counted.spaces) {
    AddKeys(static_cast<double>(of.frequent + (of.frequent < of.values ? 1 : 0)), plan);
  }
}

Result<DataPlan> PlanData(const DataProfile& train, const DataProfile* eval, const DataWish& wish) {
  if (train.rows == 0)
    return Mistaken(train.files[0] + ": there is no row in this file; give a file with rows");
  DataPlan plan;
  HDPS_ASSIGN_OR_RETURN(const Wanted wanted, Wanted::Make(train, wish));
  HDPS_ASSIGN_OR_RETURN(const LabelPlan label, PlanLabel(train, eval, wish));
  plan.task = label.task;
  plan.label = label.column;
  plan.num_classes = label.num_classes;
  plan.label_mean = label.mean;
  plan.label_deviation = label.deviation;
  plan.choices = label.choices;
  plan.notes = train.layout.notes;
  plan.notes.insert(plan.notes.end(), label.notes.begin(), label.notes.end());
  plan.missing = MissingText(train);
  DataWish of_pair = wish;
  if (label.column != kNoColumn) of_pair.label = train.columns[label.column].name;
  const UserAndItem pair = FindUserAndItem(train, of_pair);
  plan.user = pair.user;
  plan.item = pair.item;
  HDPS_RETURN_IF_ERROR(PlanColumns(train, wanted, &plan));
  PlanLabelColumn(train, label, &plan);
  HDPS_RETURN_IF_ERROR(PlanRanking(train, wish, &plan));
  plan.positive_share = static_cast<double>(label.positives) /
                        std::max(1.0, static_cast<double>(label.positives + label.negatives));
  CountKeys(train, &plan);
  NoteMissingTexts(train, &plan);
  HDPS_RETURN_IF_ERROR(PlanBadRows(train, eval, label, wish, &plan));
  return plan;
}

}  // namespace hdps
