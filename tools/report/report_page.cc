// Writes the sections of the page, the most important first.
#include "tools/report/report_page.h"

#include <algorithm>
#include <optional>

#include "common/base/show_number.h"
#include "common/metrics/metric_name.h"
#include "scheduler/page/page_assets.h"
#include "scheduler/page/page_tables.h"
#include "tools/report/charts.h"
#include "tools/report/run_tables.h"

namespace hdps {
namespace {

constexpr size_t kRowsMax = 300;
constexpr int kColours = 6;  // Colors of lines; c6 is for the rest.

std::string Tag(const std::string& tag, const std::string& text) {
  return "<" + tag + ">" + Escaped(text) + "</" + tag + ">";
}

std::string Table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table><tr>";
  for (const std::string& cell : head) html += Tag("th", cell);
  html += "</tr>";
  for (size_t r = 0; r < rows.size() && r < kRowsMax; ++r) {
    html += "<tr>";
    for (const std::string& cell : rows[r]) html += Tag("td", cell);
    html += "</tr>";
  }
  html += "</table>";
  if (rows.size() > kRowsMax) {
    html += "<p class='note'>and " + ShowWhole(static_cast<double>(rows.size() - kRowsMax)) +
            " more</p>";
  }
  return html + "\n";
}

class Page {
 public:
  explicit Page(const std::vector<RunFiles>& runs) : runs_(runs) {
    for (size_t r = 0; r < runs.size(); ++r) {
      names_.push_back(runs.size() == 1 ? ""
                                        : std::string(r == 0 ? "A" : "B") + ": " + runs[r].folder);
    }
  }

  std::string Html() {
    const std::string title =
        "hdps report: " + runs_[0].job + (runs_.size() > 1 ? " and " + runs_[1].job : "");
    html_ =
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src " +
        std::string(kReportScriptHashes) +
        "\">"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>" +
        Tag("title", title) + "<style>" + std::string(kPageCss) +
        "</style></head><body>\n"
        "<noscript><p class='note'>This browser runs no script, so curves are "
        "tables.</p></noscript>";
    Head();
    Results();
    Charts();
    Calibration();
    Stages();
    if (runs_.size() == 2) Differences();
    Events();
    Logs("Data", &RunFiles::data_lines);
    Logs("Warnings", &RunFiles::warnings);
    Configuration();
    LastFigures();
    // Behind all that they draw, because scripts in a page cannot be deferred.
    for (const std::string_view script : {kDygraphs, kReportScript}) {
      html_ += "<script>" + std::string(script) + "</script>\n";
    }
    return html_ + "</body></html>\n";
  }

 private:
  void Section(const std::string& name) { html_ += Tag("h2", name); }
  void OfRun(size_t run) {
    if (runs_.size() > 1) html_ += "<p class='dim'>" + Escaped(names_[run]) + "</p>";
  }

  void Head() {
    const bool one_job = runs_.size() == 1 || runs_[0].job == runs_[1].job;
    const std::string first = runs_[0].job.empty() ? "a run" : runs_[0].job;
    html_ += Tag("h1", one_job ? first : first + " and " + runs_[1].job);
    for (size_t r = 0; r < runs_.size(); ++r) {
      const RunFiles& run = runs_[r];
      html_ += "<p class='dim'>" + Escaped(names_[r].empty() ? run.folder : names_[r]) +
               (run.finished ? "" : " - not finished") + "</p>\n";
      for (const std::string& note : run.notes) {
        html_ += "<p class='warn'>" + Escaped(note) + "</p>\n";
      }
    }
  }

  // Writes the figures of evaluations, at the best step and the last one, and then the costs of the
  // run.
  void Results() {
    const std::vector<EvaluationColumn> columns = EvaluationColumns(runs_, names_);
    std::vector<std::vector<std::string>> rows = EvaluationRows(columns);
    if (!rows.empty() || !runs_[0].summary.empty()) Section("Result");
    if (!rows.empty()) {
      std::vector<std::string> head = {"evaluation"};
      for (const EvaluationColumn& column : columns) head.push_back(column.head);
      html_ += Table(head, rows);
    }
    if (runs_.size() > 1) {
      rows = BothSummaries(runs_);
      if (!rows.empty()) html_ += "<p></p>" + Table({"", names_[0], names_[1]}, rows);
      return;
    }
    constexpr size_t kTileTextMax = 14;
    std::string tiles;
    rows.clear();
    for (const ShownField& field : ShownSummary(runs_[0])) {
      if (field.value.size() > kTileTextMax) {
        rows.push_back({field.name, field.value});
      } else {
        tiles += "<div class='tile'>" + Tag("b", field.value) + Tag("span", field.name) + "</div>";
      }
    }
    if (!tiles.empty()) html_ += "<div class='tiles'>" + tiles + "</div>\n";
    if (!rows.empty()) html_ += Table({"", ""}, rows);
  }

  // Draws the losses of training and evaluation in one picture if they are of one kind, and each
  // other figure in its own, with all sets of every run.
  void Charts() {
    std::string charts = Chart("log loss", "train_loss", "logloss");
    std::vector<std::string> words;
    for (const RunFiles& run : runs_) {
      for (const Curve& curve : run.evaluations) {
        const bool there = curve.name == "logloss" || std::ranges::count(words, curve.name) > 0;
        if (!there) words.push_back(curve.name);
      }
    }
    for (const std::string& word : words) charts += Chart(MetricName(word), "", word);
    charts += Chart("clocks by which rows were old when they were pushed to", "push_staleness", "");
    if (!charts.empty()) {
      Section("Learning");
      html_ += "<div class='charts'>" + charts + "</div>\n";
    }
    std::string others = Chart("examples per second", "examples_per_second", "");
    if (RatesChange()) others += Chart("learning rate of the dense layers", "learning_rate", "");
    if (others.empty()) return;
    Section("Speed");
    html_ += "<div class='charts'>" + others + "</div>\n";
  }

  // Is true if the learning rates show more than the job file does.
  bool RatesChange() const {
    std::optional<double> rate;
    for (const RunFiles& run : runs_) {
      for (const Curve& curve : run.training) {
        if (curve.name != "learning_rate") continue;
        for (const Curve::Point& point : curve.points) {
          if (point.value != rate.value_or(point.value)) return true;
          rate = point.value;
        }
      }
    }
    return false;
  }

  // Draws the training curve `training` and the evaluation curve `word` of every run. Training
  // curves are dashed if any run has the evaluation curve.
  std::string Chart(const std::string& title, const std::string& training,
                    const std::string& word) const {
    std::vector<ChartLine> lines;
    std::vector<ChartMark> marks;
    bool evaluated = false;
    for (const RunFiles& run : runs_) {
      for (const Curve& curve : run.evaluations) evaluated = evaluated || curve.name == word;
    }
    int colour = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const std::string prefix = names_[r].empty() ? "" : names_[r] + ", ";
      const int first = colour;
      for (const Curve& curve : runs_[r].training) {
        if (curve.name != training) continue;
        const std::string alone = names_[r].empty() ? title : names_[r];
        const std::string name = evaluated ? prefix + "training" : alone;
        lines.push_back({name, &curve, first, false, evaluated});
      }
      for (const Curve& curve : runs_[r].evaluations) {
        constexpr size_t kDotsMax = 60;
        if (curve.name != word) continue;
        const std::string set = curve.set.empty() ? "evaluation" : "evaluation of " + curve.set;
        lines.push_back({prefix + set, &curve, colour, curve.points.size() <= kDotsMax});
        colour = (colour + 1) % kColours;
      }
      if (colour == first) colour = (colour + 1) % kColours;
      if (evaluated && runs_[r].best_step) {
        const std::string run = runs_.size() == 1 ? "" : std::string(r == 0 ? "A: " : "B: ");
        marks.push_back({run + "best", *runs_[r].best_step, first});
      }
    }
    const bool no_evaluation = training == "train_loss" && !evaluated;
    return LineChart(no_evaluation ? "loss of training" : title, lines, marks);
  }

  void Calibration() {
    std::vector<CalibrationLine> lines;
    for (size_t r = 0; r < runs_.size(); ++r) {
      lines.push_back({names_[r], &runs_[r].calibration, static_cast<int>(r)});
    }
    const std::string chart = CalibrationChart(lines);
    if (chart.empty()) return;
    Section("Calibration");
    html_ += "<div class='charts'>" + chart + "</div>\n";
  }

  void Stages() {
    std::string bars;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const std::string name = names_[r].empty() ? "mean of the workers' steps" : names_[r];
      bars += StageBar(name, runs_[r].stages);
    }
    if (bars.empty()) return;
    Section("Where time goes");
    html_ += bars;
  }

  void Differences() {
    Section("Settings that differ");
    if (runs_[0].settings.empty() || runs_[1].settings.empty()) {
      html_ += "<p class='dim'>The job of one of the runs is not known.</p>";
      return;
    }
    const std::vector<std::vector<std::string>> rows = DifferentSettings(runs_[0], runs_[1]);
    if (rows.empty()) {
      html_ += "<p class='dim'>None: both trained the same job.</p>";
    } else {
      html_ += Table({"setting", names_[0], names_[1]}, rows);
    }
  }

  void Events() {
    std::vector<std::vector<std::string>> rows;
    for (size_t r = 0; r < runs_.size(); ++r) {
      for (const RunEvent& event : runs_[r].events) {
        rows.push_back({ShowNumber("%.1f s", event.time), ShowWhole(event.step), event.what});
        if (runs_.size() > 1) rows.back().insert(rows.back().begin(), r == 0 ? "A" : "B");
      }
    }
    if (rows.empty()) return;
    Section("Events");
    std::vector<std::string> head = {"time", "step", "what"};
    if (runs_.size() > 1) head.insert(head.begin(), "run");
    html_ += Table(head, rows);
  }

  void Logs(const std::string& section, std::vector<std::string> RunFiles::*lines) {
    for (size_t r = 0; r < runs_.size(); ++r) {
      const std::vector<std::string>& here = runs_[r].*lines;
      const bool same = r == 1 && here == runs_[0].*lines;
      if (here.empty() || same) continue;
      Section(section);
      if (r == 1 || (runs_.size() > 1 && here != runs_[1].*lines)) OfRun(r);
      std::string text;
      for (const std::string& line : here) text += line + "\n";
      html_ += Tag("pre", text);
    }
  }

  void Configuration() {
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (runs_[r].job_text.empty()) continue;
      html_ += "<details><summary>The job with all its defaults" +
               Escaped(names_[r].empty() ? "" : ", " + names_[r]) + "</summary>" +
               Tag("pre", runs_[r].job_text) + "</details>\n";
    }
  }

  // Shows what the page of each run showed last, by the same panels.
  void LastFigures() {
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (runs_[r].last_page.empty()) continue;
      html_ += "<section class='figures'>" + Tag("h2", "What the members did last");
      OfRun(r);
      html_ += "<noscript>" + TablesOf(runs_[r].last_page) + "</noscript>" +
               DataElement(runs_[r].last_page) + "</section>\n";
    }
  }

  const std::vector<RunFiles>& runs_;
  std::vector<std::string> names_;
  std::string html_;
};

}  // namespace

std::string ReportPage(const std::vector<RunFiles>& runs) { return Page(runs).Html(); }

}  // namespace hdps
