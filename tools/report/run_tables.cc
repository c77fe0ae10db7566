// Defines names, numbers and differences in the tables of a report.
#include "tools/report/run_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "common/base/byte_count.h"
#include "common/base/show_number.h"
#include "common/metrics/metric_name.h"

namespace hdps {
namespace {

enum class Kind : uint8_t { kPlain, kBytes, kSeconds, kElsewhere };

// Fields of summary.json; others are shown by their own names. kElsewhere: not in this table,
// because figures have their own, the job's name is the title, and rows of dense layers do not
// interest a reader.
struct FieldName {
  const char* field;
  const char* name;
  Kind kind = Kind::kPlain;
};
constexpr FieldName kFieldNames[] = {
    {"job", "", Kind::kElsewhere},
    {"eval_auc", "", Kind::kElsewhere},
    {"eval_logloss", "", Kind::kElsewhere},
    {"eval_auc_undefined", "", Kind::kElsewhere},
    {"best_auc", "", Kind::kElsewhere},
    {"best_logloss", "", Kind::kElsewhere},
    {"best_value", "", Kind::kElsewhere},
    {"workers", "number of workers"},
    {"servers", "number of servers"},
    {"best_metric", "best by"},
    {"best_step", "best step"},
    {"best_checkpoint", "best checkpoint"},
    {"train_logloss", "loss of training, last epoch"},
    {"stopped_early", "ended early"},
    {"examples", "examples trained on"},
    {"examples_per_second", "examples per second"},
    {"wall_seconds", "in all", Kind::kSeconds},
    {"rows", "rows of embedding tables"},
    {"dense_parameters", "parameters of dense layers"},
    {"dense_rows", "", Kind::kElsewhere},
    {"rows_admitted", "rows admitted"},
    {"gradients_refused", "gradients without a row"},
    {"rows_evicted", "rows evicted"},
    {"rows_fetched", "rows read back from disk"},
    {"rows_on_disk", "rows on disk"},
    {"row_bytes", "memory of rows", Kind::kBytes},
    {"server_bytes_max", "memory of the largest server", Kind::kBytes},
    {"failures_survived", "failures survived"},
    {"leaves", "left as told to"},
    {"steps_again", "steps trained again"},
    {"examples_again", "examples trained again"},
    {"checkpoint", "newest checkpoint"},
    {"staleness_max", "most steps ahead of the slowest"},
    {"bad_rows", "bad rows passed over"},
    {"unknown_ids", "ids without a row"},
    {"resumed_from", "resumed from step"},
    {"stopped_at", "stopped at step"},
};

const FieldName* Known(const std::string& field) {
  const auto* const found = std::ranges::find(kFieldNames, field, &FieldName::field);
  return found == std::end(kFieldNames) ? nullptr : found;
}

// Shows 123456.789 as 123,457, and 0.921389 as 0.9214.
std::string Nice(const std::string& value, Kind kind) {
  constexpr double kManyDigits = 1000;
  if (value.empty() || value.find_first_not_of("0123456789.-+e") != value.npos) return value;
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (*end != 0 || value.size() > 20) return value;
  if (kind == Kind::kSeconds) return ShowNumber("%.1f s", number);
  const bool whole = value.find_first_of(".e") == value.npos;
  if (kind == Kind::kBytes && whole && number > 0) {
    return ShowByteCount(static_cast<uint64_t>(number));
  }
  if (whole || std::abs(number) >= kManyDigits) return ShowWhole(number);
  return ShowNumber("%.4f", number);
}

// Returns the curve of the same figure and set, or null.
const Curve* Evaluation(const RunFiles& run, const Curve& like) {
  const auto found = std::ranges::find_if(run.evaluations, [&](const Curve& curve) {
    return curve.name == like.name && curve.set == like.set;
  });
  return found == run.evaluations.end() ? nullptr : &*found;
}

std::string ValueIn(const EvaluationColumn& column, const Curve& like) {
  const Curve* const curve = Evaluation(*column.run, like);
  if (curve == nullptr) return "";
  if (column.best) return curve->at_best ? ShowNumber("%.6f", *curve->at_best) : "undefined";
  if (!curve->undefined.empty()) return "undefined: " + curve->undefined;
  const bool told =
      !curve->points.empty() && curve->points.back().step == column.run->last_evaluated;
  return told ? ShowNumber("%.6f", curve->points.back().value) : "undefined";
}

using Values = std::map<std::string, std::string>;

Values ByKey(const RunFiles::Settings& settings) { return {settings.begin(), settings.end()}; }

}  // namespace

std::vector<ShownField> ShownSummary(const RunFiles& run) {
  std::vector<ShownField> shown;
  const Values values = ByKey(run.summary);
  const auto same = [&values](const char* a, const char* b) {
    return values.contains(a) && values.contains(b) && values.at(a) == values.at(b);
  };
  for (const auto& [field, value] : run.summary) {
    // Without a policy every row is admitted.
    if (field == "rows_admitted" && same("rows", "rows_admitted")) continue;
    const FieldName* const known = Known(field);
    const Kind kind = known == nullptr ? Kind::kPlain : known->kind;
    if (kind == Kind::kElsewhere || value == "0" || value.empty()) continue;
    const std::string nice = field == "best_metric" ? MetricName(value) : Nice(value, kind);
    shown.push_back({known == nullptr ? field : known->name, nice});
  }
  return shown;
}

std::vector<std::vector<std::string>> BothSummaries(const std::vector<RunFiles>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (const ShownField& field : ShownSummary(runs[r])) {
      auto row = std::ranges::find(rows, field.name, [](const auto& cells) { return cells[0]; });
      if (row == rows.end()) row = rows.insert(rows.end(), {field.name, "", ""});
      (*row)[r + 1] = field.value;
    }
  }
  return rows;
}

std::vector<EvaluationColumn> EvaluationColumns(const std::vector<RunFiles>& runs,
                                                const std::vector<std::string>& names) {
  std::vector<EvaluationColumn> columns;
  for (size_t r = 0; r < runs.size(); ++r) {
    const std::string prefix = names[r].empty() ? "" : names[r] + ", ";
    const std::optional<double> best = runs[r].best_step, last = runs[r].last_evaluated;
    if (!last) continue;
    if (best) {
      columns.push_back({&runs[r], true, prefix + "best, step " + ShowWhole(*best)});
    }
    if (best != last) {
      columns.push_back({&runs[r], false, prefix + "last, step " + ShowWhole(*last)});
    }
  }
  return columns;
}

std::vector<std::vector<std::string>> EvaluationRows(const std::vector<EvaluationColumn>& columns) {
  std::vector<std::vector<std::string>> rows;
  std::vector<const Curve*> figures;
  for (const EvaluationColumn& column : columns) {
    for (const Curve& curve : column.run->evaluations) {
      const bool there = std::ranges::any_of(figures, [&](const Curve* known) {
        return known->name == curve.name && known->set == curve.set;
      });
      if (!there) figures.push_back(&curve);
    }
  }
  for (const Curve* figure : figures) {
    const std::string of = figure->set.empty() ? "" : " of " + figure->set;
    rows.push_back({MetricName(figure->name) + of});
    for (const EvaluationColumn& column : columns) rows.back().push_back(ValueIn(column, *figure));
  }
  return rows;
}

std::vector<std::vector<std::string>> DifferentSettings(const RunFiles& a, const RunFiles& b) {
  const bool known = !a.given.empty() && !b.given.empty();
  const RunFiles* const runs[] = {&a, &b};
  Values given[2], all[2];
  std::vector<std::string> keys;
  for (size_t r = 0; r < 2; ++r) {
    const RunFiles::Settings& settings = known ? runs[r]->given : runs[r]->settings;
    given[r] = ByKey(settings);
    all[r] = ByKey(runs[r]->settings);
    for (const auto& [key, value] : settings) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : keys) {
    std::string values[2], shown[2];
    for (size_t r = 0; r < 2; ++r) {
      if (given[r].contains(key)) {
        values[r] = shown[r] = given[r][key];
      } else if (all[r].contains(key)) {
        values[r] = all[r][key];
        shown[r] = values[r] + " (default)";
      } else {
        shown[r] = known ? "(default)" : "";
      }
    }
    if (values[0] != values[1]) rows.push_back({key, shown[0], shown[1]});
  }
  return rows;
}

}  // namespace hdps
