// Sections of the page, from what matters most to what is looked up.
#include "tools/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "common/base/show_number.h"
#include "tools/report/charts.h"

namespace hdps {
namespace {

constexpr const char* kStyle = R"css(
:root { --ink: #1c2330; --dim: #667085; --paper: #ffffff; --card: #f6f7f9; --rule: #dfe3e8;
  --c0: #2563eb; --c1: #d9480f; --c2: #0f9d76; --c3: #9333ea; --c4: #b58900; --c5: #64748b;
    --c6: #c2c8d0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --dim: #98a2b3; --paper: #12161d; --card: #1b212b; --rule: #323b49;
    --c0: #6ea8fe; --c1: #ff9457; --c2: #4fd1a5; --c3: #c792ea; --c4: #e5c453; --c5: #94a3b8;
    --c6: #55606f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1180px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 34px 0 12px; }
.dim, .note { color: var(--dim); font-size: 13px; } .note { margin: 4px 0 0; }
.warn { border-left: 3px solid var(--c1); padding: 2px 0 2px 10px; margin: 6px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr));
    gap: 10px; }
.tile { background: var(--card); border-radius: 8px; padding: 10px 14px;
    overflow-wrap: anywhere; }
.tile b { display: block; font-size: 19px; } .tile span { color: var(--dim); font-size: 13px; }
.charts { display: grid;
    grid-template-columns: repeat(auto-fill, minmax(min(480px, 100%), 1fr)); gap: 18px; }
figure { margin: 0; background: var(--card); border-radius: 8px; padding: 12px 14px; }
figcaption { font-weight: 600; margin-bottom: 6px; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px;
    fill: var(--dim); }
.grid { stroke: var(--rule); stroke-width: 1; } .axis { stroke: var(--dim); stroke-width: 1; }
.diagonal { stroke: var(--dim); stroke-width: 1.5; stroke-dasharray: 5 4; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); }
svg .c0 { fill: var(--c0); } svg .c1 { fill: var(--c1); } svg .c2 { fill: var(--c2); }
svg .c3 { fill: var(--c3); } svg .c4 { fill: var(--c4); } svg .c5 { fill: var(--c5); }
svg .c6 { fill: var(--c6); } svg .line { fill: none; } .bin { fill-opacity: .75; }
.legend { margin: 8px 0 0; font-size: 13px; } .legend span { margin-right: 16px;
    white-space: nowrap; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
    margin-right: 6px; }
i.c0 { background: var(--c0); } i.c1 { background: var(--c1); } i.c2 { background: var(--c2); }
i.c3 { background: var(--c3); } i.c4 { background: var(--c4); } i.c5 { background: var(--c5); }
i.c6 { background: var(--c6); }
table { border-collapse: collapse; font-size: 14px; width: 100%; } th { text-align: left; }
td, th { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: anywhere; }
pre { background: var(--card); border-radius: 8px; padding: 12px 14px; overflow-x: auto;
    font-size: 13px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; font-weight: 600; margin: 34px 0 12px; font-size: 17px; }
)css";

constexpr size_t kRowsMax = 300;

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
        "style-src 'unsafe-inline'\">"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>" +
        Tag("title", title) + "<style>" + kStyle + "</style></head><body>\n";
    Head();
    Results();
    Charts("Evaluation", &RunFiles::evaluations, true);
    Charts("Training", &RunFiles::training, false);
    Calibration();
    Stages();
    if (runs_.size() == 2) Differences();
    Events();
    Logs("Data", &RunFiles::data_lines);
    Logs("Warnings", &RunFiles::warnings);
    Configuration();
    return html_ + "</body></html>\n";
  }

 private:
  void Section(const std::string& name) { html_ += Tag("h2", name); }
  void OfRun(size_t run) {
    if (runs_.size() > 1) html_ += "<p class='dim'>" + Escaped(names_[run]) + "</p>";
  }

  void Head() {
    for (size_t r = 0; r < runs_.size(); ++r) {
      const RunFiles& run = runs_[r];
      html_ += Tag("h1", (runs_.size() > 1 ? std::string(r == 0 ? "A: " : "B: ") : "") +
                             (run.job.empty() ? "a run" : run.job));
      html_ += "<p class='dim'>" + Escaped(run.folder) + (run.finished ? "" : " - not finished") +
               "</p>\n";
      for (const std::string& note : run.notes) {
        html_ += "<p class='warn'>" + Escaped(note) + "</p>\n";
      }
    }
  }

  // As people read it: 123456.789 as 123,457, and 0.921389 as 0.9214.
  static std::string Nice(const std::string& value) {
    constexpr double kManyDigits = 1000;
    if (value.empty() || value.find_first_not_of("0123456789.-+e") != value.npos) return value;
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (*end != 0 || value.size() > 20) return value;
    const bool whole = value.find_first_of(".e") == value.npos;
    if (whole || std::abs(number) >= kManyDigits) return ShowWhole(number);
    return ShowNumber("%.4f", number);
  }

  // Short figures of one run are tiles; what is long, and two runs, is a table.
  void Results() {
    constexpr size_t kTileTextMax = 14;
    std::string tiles;
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, value] : runs_[0].summary) {
      if (name == "job" || runs_.size() > 1) continue;
      const std::string nice = Nice(value);
      if (nice.size() > kTileTextMax) {
        rows.push_back({name, nice});
      } else if (nice != "0" && !nice.empty()) {
        tiles += "<div class='tile'>" + Tag("b", nice) + Tag("span", name) + "</div>";
      }
    }
    if (runs_.size() > 1) rows = BothSummaries();
    if (tiles.empty() && rows.empty()) return;
    Section("Result");
    if (!tiles.empty()) html_ += "<div class='tiles'>" + tiles + "</div>\n";
    if (!rows.empty()) {
      html_ += runs_.size() > 1 ? Table({"figure", "A", "B"}, rows) : Table({"", ""}, rows);
    }
  }

  std::vector<std::vector<std::string>> BothSummaries() const {
    std::vector<std::vector<std::string>> rows;
    for (size_t r = 0; r < runs_.size(); ++r) {
      for (const auto& [name, value] : runs_[r].summary) {
        auto row = std::ranges::find(rows, name, [](const auto& cells) { return cells[0]; });
        if (row == rows.end()) row = rows.insert(rows.end(), {name, "", ""});
        (*row)[r + 1] = Nice(value);
      }
    }
    std::erase_if(rows, [](const auto& cells) { return cells[1] == "0" && cells[2] == "0"; });
    return rows;
  }

  // A picture for each name, with that curve of every run.
  void Charts(const std::string& section, std::vector<Curve> RunFiles::*curves, bool dots) {
    std::vector<std::string> names;
    for (const RunFiles& run : runs_) {
      for (const Curve& curve : run.*curves) {
        if (std::ranges::find(names, curve.name) == names.end()) names.push_back(curve.name);
      }
    }
    const auto speed = std::ranges::find(names, "examples_per_second");  // It matters least.
    if (speed != names.end()) std::rotate(speed, speed + 1, names.end());
    std::string charts;
    for (const std::string& name : names) {
      std::vector<ChartLine> lines;
      for (size_t r = 0; r < runs_.size(); ++r) {
        for (const Curve& curve : runs_[r].*curves) {
          constexpr size_t kDotsMax = 60;
          if (curve.name != name) continue;
          lines.push_back({names_[r].empty() ? name : names_[r], &curve, static_cast<int>(r),
                           dots && curve.points.size() <= kDotsMax});
        }
      }
      charts += LineChart(name, lines);
    }
    if (charts.empty()) return;
    Section(section);
    html_ += "<div class='charts'>" + charts + "</div>\n";
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
    std::map<std::string, std::string> other(runs_[1].settings.begin(), runs_[1].settings.end());
    std::vector<std::vector<std::string>> rows;
    for (const auto& [key, value] : runs_[0].settings) {
      const auto there = other.find(key);
      if (there == other.end() || there->second != value) {
        rows.push_back({key, value, there == other.end() ? "" : there->second});
      }
      if (there != other.end()) other.erase(there);
    }
    for (const auto& [key, value] : runs_[1].settings) {
      if (other.contains(key)) rows.push_back({key, "", value});
    }
    Section("Settings that differ");
    if (runs_[0].settings.empty() || runs_[1].settings.empty()) {
      html_ += "<p class='dim'>The job of one of the runs is not known.</p>";
    } else if (rows.empty()) {
      html_ += "<p class='dim'>None: both trained the same job.</p>";
    } else {
      html_ += Table({"setting", "A", "B"}, rows);
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
      OfRun(r);
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

  const std::vector<RunFiles>& runs_;
  std::vector<std::string> names_;
  std::string html_;
};

}  // namespace

std::string ReportPage(const std::vector<RunFiles>& runs) { return Page(runs).Html(); }

}  // namespace hdps
