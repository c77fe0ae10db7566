// Writes curves as JSON and tables, bars as HTML, and calibration as SVG.
#include "tools/report/charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/show_number.h"
#include "scheduler/page/page_tables.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWidth = 560, kHeight = 260;
constexpr double kLeft = 62, kRight = 14, kTop = 22, kBottom = 34;

std::string Px(double value) { return ShowNumber("%.1f", value); }

std::string Text(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x='" + Px(x) + "' y='" + Px(y) + "' text-anchor='" + anchor + "'>" + Escaped(text) +
         "</text>";
}

std::string LineTo(double x1, double y1, double x2, double y2, const std::string& kind) {
  return "<line x1='" + Px(x1) + "' y1='" + Px(y1) + "' x2='" + Px(x2) + "' y2='" + Px(y2) +
         "' class='" + kind + "'/>";
}

std::string Svg(const std::string& name, const std::string& inside) {
  return "<svg viewBox='0 0 " + Px(kWidth) + " " + Px(kHeight) + "' role='img' aria-label='" +
         Escaped(name) + "'>" + inside + "</svg>";
}

struct LegendEntry {
  std::string label;
  int colour = 0;
};

std::string Legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<p class='legend'>";
  for (const LegendEntry& entry : entries) {
    html += "<span><i class='c" + std::to_string(entry.colour) + "'></i>" + Escaped(entry.label) +
            "</span>";
  }
  return html + "</p>";
}

std::string Picture(const std::string& title, const std::string& picture,
                    const std::string& below) {
  return "<figure><figcaption>" + Escaped(title) + "</figcaption>" + picture + below +
         "</figure>\n";
}

// Writes some of the points as a table: a row a step, a column a line.
std::string PointsTable(const std::vector<ChartLine>& lines) {
  constexpr size_t kRowsMax = 30;
  std::map<double, std::vector<std::string>> rows;
  std::string html = "<table><tr><th>step</th>";
  for (size_t i = 0; i < lines.size(); ++i) {
    html += "<th>" + Escaped(lines[i].label) + "</th>";
    for (const Curve::Point& point : lines[i].curve->points) {
      std::vector<std::string>& cells = rows[point.step];
      cells.resize(lines.size());
      cells[i] = ShowNumber("%.6g", point.value);
    }
  }
  html += "</tr>";
  const size_t every = (rows.size() + kRowsMax - 1) / kRowsMax;
  size_t left = rows.size();  // The last row is always shown.
  for (const auto& [step, cells] : rows) {
    if (--left % every != 0) continue;
    html += "<tr><td>" + ShowWhole(step) + "</td>";
    for (const std::string& cell : cells) html += "<td>" + cell + "</td>";
    html += "</tr>";
  }
  return html + "</table>";
}

// An axis from 0 to a number with one digit, with ticks at round numbers.
struct RoundAxis {
  explicit RoundAxis(double highest) {
    const double power = std::pow(10, std::floor(std::log10(highest)));
    const double digit = std::ceil(highest / power);
    high = digit * power;
    ticks = digit <= 2 ? 4 : static_cast<int>(digit);
  }
  double high = 0;
  int ticks = 0;
};

}  // namespace

std::string DataElement(const std::string& json) {
  std::string html = "<script type='application/json'>";
  for (const char c : json) {
    if (c == '<') {
      html += "\\u003c";
    } else {
      html += c;
    }
  }
  return html + "</script>";
}

std::string LineChart(const std::string& title, const std::vector<ChartLine>& given,
                      const std::vector<ChartMark>& marks) {
  std::vector<ChartLine> lines;
  std::ranges::copy_if(given, std::back_inserter(lines),
                       [](const ChartLine& line) { return !line.curve->points.empty(); });
  if (lines.empty()) return "";
  Json data = {{"series", Json::array()}, {"marks", Json::array()}};
  for (const ChartLine& line : lines) {
    Json points = Json::array();
    for (const Curve::Point& point : line.curve->points) {
      points.push_back({point.step, point.value});
    }
    data["series"].push_back({{"label", line.label},
                              {"color", line.colour},
                              {"dashed", line.dashed},
                              {"dots", line.dots},
                              {"points", std::move(points)}});
  }
  for (const ChartMark& mark : marks) {
    data["marks"].push_back({{"label", mark.label}, {"step", mark.step}, {"color", mark.colour}});
  }
  return "<figure class='chart'><figcaption>" + Escaped(title) + "</figcaption><noscript>" +
         PointsTable(lines) + "</noscript>" +
         DataElement(data.dump(-1, ' ', false, Json::error_handler_t::replace)) + "</figure>\n";
}

std::string StageBar(const std::string& label, const std::vector<StageTime>& stages) {
  double all = 0;
  for (const StageTime& stage : stages) all += stage.ms;
  if (all <= 0) return "";
  std::string bar = "<div class='bar' role='img' aria-label='" + Escaped(label) + "'>";
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].ms <= 0) continue;
    const int colour = static_cast<int>(i);
    bar += "<div class='c" + std::to_string(colour) +
           "' style='flex-grow: " + ShowNumber("%.2f", 100 * stages[i].ms / all) + "'></div>";
    entries.push_back({stages[i].name + ShowNumber(" %.2f ms", stages[i].ms) +
                           ShowNumber(" (%.0f%%)", 100 * stages[i].ms / all),
                       colour});
  }
  return Picture(label + ShowNumber(": %.2f ms a step", all), bar + "</div>", Legend(entries));
}

std::string CalibrationChart(const std::vector<CalibrationLine>& lines) {
  constexpr double kRadiusMax = 11;
  double highest = 0, most = 0;
  std::vector<LegendEntry> entries;
  for (const CalibrationLine& line : lines) {
    if (line.bins->empty()) continue;
    entries.push_back({line.label, line.colour});
    for (const CalibrationBin& bin : *line.bins) {
      if (bin.weight > 0) highest = std::max({highest, bin.predicted, bin.observed});
      most = std::max(most, bin.weight);
    }
  }
  if (entries.empty() || most <= 0 || highest <= 0) return "";
  const RoundAxis axis(highest);
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const auto x = [&](double value) { return kLeft + value / axis.high * (right - kLeft); };
  const auto y = [&](double value) { return bottom - value / axis.high * (bottom - kTop); };
  std::string svg;
  for (int i = 0; i <= axis.ticks; ++i) {
    const double tick = axis.high * i / axis.ticks;
    svg += LineTo(kLeft, y(tick), right, y(tick), "grid");
    svg += Text(kLeft - 7, y(tick) + 4, "end", ShowNumber("%.6g", tick));
    svg += Text(x(tick), bottom + 17, "middle", ShowNumber("%.6g", tick));
  }
  svg += LineTo(x(0), y(0), x(axis.high), y(axis.high), "diagonal");
  for (const CalibrationLine& line : lines) {
    for (const CalibrationBin& bin : *line.bins) {
      if (bin.weight <= 0) continue;
      svg += "<circle cx='" + Px(x(bin.predicted)) + "' cy='" + Px(y(bin.observed)) + "' r='" +
             Px(std::max(2.5, kRadiusMax * std::sqrt(bin.weight / most))) + "' class='bin c" +
             std::to_string(line.colour) + "'><title>predicted " +
             ShowNumber("%.4g", bin.predicted) + ", observed " + ShowNumber("%.4g", bin.observed) +
             ", " + ShowWhole(bin.weight) + " examples</title></circle>";
    }
  }
  return Picture("Calibration: observed share over predicted probability", Svg("calibration", svg),
                 entries.size() > 1 ? Legend(entries) : "");
}

}  // namespace hdps
