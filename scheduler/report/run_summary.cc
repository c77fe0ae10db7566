// Composes the rows of the table.
#include "scheduler/report/run_summary.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "common/base/counted.h"
#include "common/base/hex_digits.h"
#include "common/base/show_number.h"
#include "common/job/spec/checkpoint_spec.h"
#include "scheduler/report/setting_changes.h"

namespace hdps {
namespace {

// Such as "step 382, AUC 0.920512, logloss 0.294100; OUT/checkpoint/step_...".
std::string BestText(const RunSummary& s) {
  std::string text = "step " + std::to_string(*s.best_step);
  if (s.best_metric != "auc" && s.best_metric != "logloss") {
    text += ", " + s.best_metric + ShowNumber(" %.6f", s.best_value);
  }
  if (std::isfinite(s.best_auc)) text += ShowNumber(", AUC %.6f", s.best_auc);
  if (std::isfinite(s.best_logloss)) text += ShowNumber(", logloss %.6f", s.best_logloss);
  return text + (s.best_checkpoint.empty() ? "; not kept" : "; " + s.best_checkpoint);
}

// Adds a row for each figure, and the number of examples.
void AddFigures(const Evaluation& evaluation,
                std::vector<std::pair<std::string, std::string>>* rows) {
  std::string last_about;
  for (const Figure& figure : evaluation.figures) {
    const bool told = std::isfinite(figure.value);
    std::string value = told ? ShowNumber("%.6f", figure.value) : "undefined";
    // A remark shared by several figures is given once.
    if (!figure.about.empty() && figure.about != last_about) {
      value += told ? " (" + figure.about + ")" : ": " + figure.about;
    }
    last_about = figure.about;
    rows->emplace_back("eval " + ShownWord(figure), value);
  }
  if (evaluation.by_program) return;
  rows->emplace_back("eval examples", ShowWhole(static_cast<double>(evaluation.examples)));
}

}  // namespace

std::string DigestText(const uint64_t digest[2]) {
  return HexDigits(digest[0]) + HexDigits(digest[1]);
}

std::string SummaryTable(const RunSummary& s, const std::string& out) {
  std::vector<std::pair<std::string, std::string>> rows;
  const auto row = [&rows](const std::string& name, const std::string& value) {
    rows.emplace_back(name, value);
  };
  row("job", s.job + " (" + s.mode + ", " + Counted(s.workers, "worker") + ", " +
                 Counted(s.servers, "server") + ")");
  if (s.evaluation) AddFigures(*s.evaluation, &rows);
  for (size_t set = 1; set < s.eval_sets.size(); ++set) {
    row("eval of " + s.eval_sets[set].first, Describe(s.eval_sets[set].second));
  }
  if (s.progressive) row("before learning", Describe(*s.progressive));
  if (s.best_step) row("best", BestText(s));
  if (s.train_logloss) row("train loss", ShowNumber("%.6f in the last epoch", *s.train_logloss));
  row("steps", ShowWhole(static_cast<double>(s.steps)) + " (" +
                   ShowWhole(static_cast<double>(s.examples)) + " examples)");
  row("speed", ShowWhole(s.examples_per_second) + " examples/s, " +
                   ShowNumber("%.1f s in all", s.wall_seconds));
  row("parameters", ShowWhole(static_cast<double>(s.rows)) + " rows of embedding tables, " +
                        ShowWhole(static_cast<double>(s.dense_parameters)) + " in dense layers");
  row("digest", DigestText(s.digest));
  if (s.failures_survived > 0) {
    row("survived", Counted(s.failures_survived, "lost member") + "; " +
                        ShowWhole(static_cast<double>(s.steps_again)) + " steps trained again");
  }
  if (s.leaves > 0) row("left", Counted(s.leaves, "member") + " as told to");
  if (s.cache.bytes > 0) {
    row("kept rows", ShowNumber("%.2f %% of the keys, ", 100 * HitRate(s.cache)) +
                         ShowWhole(static_cast<double>(s.cache.swaps)) + " brought in, " +
                         ShowWhole(static_cast<double>(s.cache.bytes)) + " bytes at the workers");
  }
  for (const SettingChange& change : s.changes) row("changed", ChangeText(change));
  if (!s.checkpoint.empty()) row("checkpoint", s.checkpoint);
  row("files", out + " (summary.json, metrics.jsonl, log/); hdps report draws them");
  size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text = s.stopped_at ? "Stopped as asked, and saved.\n" : "Done.\n";
  if (!s.stopped_early.empty()) text = "Done early: " + s.stopped_early + ".\n";
  for (const auto& [name, value] : rows) {
    text += "  " + name + std::string(width - name.size() + 1, ' ') + value + "\n";
  }
  return text;
}

}  // namespace hdps
