// Draws axes with round numbers, and curves on them.
#include "tools/report/charts.h"

#include <algorithm>
#include <cmath>

#include "common/base/show_number.h"

namespace hdps {
namespace {

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

std::string Compact(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return ShowNumber("%.4gG", value / 1e9);
  if (size >= 1e6) return ShowNumber("%.4gM", value / 1e6);
  if (size >= 1e4) return ShowNumber("%.4gk", value / 1e3);
  return ShowNumber("%.6g", value);
}

// Maps a range of numbers to pixels, with ticks at round numbers.
struct Axis {
  double low = 0, high = 1;
  double from = 0, to = 1;  // Range of pixels.

  // Widens the range a little; an empty range gets a width.
  void Settle(double margin) {
    if (!(high > low)) {
      const double half = low == 0 ? 1 : std::abs(low) * 0.05;
      low -= half;
      high += half;
    }
    const double more = (high - low) * margin;
    low -= more;
    high += more;
  }
  double At(double value) const { return from + (value - low) / (high - low) * (to - from); }
  std::vector<double> Ticks() const {
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      step = factor * power;
      if (step >= rough) break;
    }
    std::vector<double> ticks;
    for (double tick = std::ceil(low / step) * step; tick <= high && ticks.size() < 12;
         tick += step) {
      ticks.push_back(std::abs(tick) < step / 1000 ? 0 : tick);
    }
    return ticks;
  }
};

// Draws a line at the step with a label above that stays inside the picture.
std::string Mark(const ChartMark& mark, const Axis& x, const Axis& y) {
  const double px = x.At(mark.step);
  const bool right = px > (x.from + x.to) / 2;
  return "<line x1='" + Px(px) + "' y1='" + Px(y.from) + "' x2='" + Px(px) + "' y2='" + Px(y.to) +
         "' class='mark line c" + std::to_string(mark.colour) + "'><title>" + Escaped(mark.label) +
         ", step " + ShowWhole(mark.step) + "</title></line>" +
         Text(px + (right ? -5 : 5), y.to - 7, right ? "end" : "start", mark.label);
}

std::string Frame(const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.Ticks()) {
    svg += LineTo(x.from, y.At(tick), x.to, y.At(tick), "grid");
    svg += Text(x.from - 7, y.At(tick) + 4, "end", Compact(tick));
  }
  for (const double tick : x.Ticks()) {
    svg += LineTo(x.At(tick), y.from, x.At(tick), y.from + 4, "axis");
    svg += Text(x.At(tick), y.from + 17, "middle", Compact(tick));
  }
  return svg + LineTo(x.from, y.from, x.to, y.from, "axis");
}

std::string Svg(const std::string& name, const std::string& inside, double height) {
  return "<svg viewBox='0 0 " + Px(kWidth) + " " + Px(height) + "' role='img' aria-label='" +
         Escaped(name) + "'>" + inside + "</svg>";
}

struct LegendEntry {
  std::string label;
  int colour = 0;
  bool dashed = false;
};

std::string Legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<p class='legend'>";
  for (const LegendEntry& entry : entries) {
    html += "<span><i class='c" + std::to_string(entry.colour) + (entry.dashed ? " dash" : "") +
            "'></i>" + Escaped(entry.label) + "</span>";
  }
  return html + "</p>";
}

std::string Picture(const std::string& title, const std::string& picture,
                    const std::string& below) {
  return "<figure><figcaption>" + Escaped(title) + "</figcaption>" + picture + below +
         "</figure>\n";
}

// Returns the largest value to show: the first steps of a training may be far above all others.
double ShownMax(const std::vector<ChartLine>& lines, double low, double high) {
  std::vector<double> values;
  for (const ChartLine& line : lines) {
    for (const Curve::Point& point : line.curve->points) values.push_back(point.value);
  }
  constexpr size_t kMany = 40;
  if (values.size() < kMany) return high;
  std::ranges::sort(values);
  const double most = values[values.size() * 97 / 100];
  return high - low > 4 * (most - low) && most > low ? most + (most - low) / 2 : high;
}

std::string Polyline(const ChartLine& line, const Axis& x, const Axis& y) {
  const std::string kind = "c" + std::to_string(line.colour);
  std::string points, dots;
  for (const Curve::Point& point : line.curve->points) {
    const double px = x.At(point.step), py = y.At(std::min(point.value, y.high));
    points += Px(px) + "," + Px(py) + " ";
    if (!line.dots && line.curve->points.size() > 1) continue;
    dots += "<circle cx='" + Px(px) + "' cy='" + Px(py) + "' r='3.5' class='dot " + kind +
            "'><title>" + Escaped(line.label) + ", step " + ShowWhole(point.step) + ": " +
            ShowNumber("%.6g", point.value) + "</title></circle>";
  }
  return "<polyline class='line " + kind + (line.dashed ? " dashed" : "") + "' points='" + points +
         "'/>" + dots;
}

}  // namespace

std::string Escaped(const std::string& text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string LineChart(const std::string& title, const std::vector<ChartLine>& given,
                      const std::vector<ChartMark>& marks) {
  std::vector<ChartLine> lines;
  std::ranges::copy_if(given, std::back_inserter(lines),
                       [](const ChartLine& line) { return !line.curve->points.empty(); });
  if (lines.empty()) return "";
  const Curve::Point first = lines[0].curve->points[0];
  Axis x = {0, first.step, kLeft, kWidth - kRight},
       y = {first.value, first.value, kHeight - kBottom, kTop};
  std::vector<LegendEntry> entries;
  for (const ChartLine& line : lines) {
    entries.push_back({line.label, line.colour, line.dashed});
    for (const Curve::Point& point : line.curve->points) {
      x.high = std::max(x.high, point.step);
      y.low = std::min(y.low, point.value);
      y.high = std::max(y.high, point.value);
    }
  }
  const double shown = ShownMax(lines, y.low, y.high);
  const std::string cut = shown < y.high ? "<p class='note'>Values above " + Compact(shown) +
                                               " are drawn at the upper edge.</p>"
                                         : "";
  y.high = shown;
  x.Settle(0);
  y.Settle(0.06);
  std::string svg = Frame(x, y) + Text(x.to, y.from + 31, "end", "step");
  for (const ChartMark& mark : marks) svg += Mark(mark, x, y);
  for (const ChartLine& line : lines) svg += Polyline(line, x, y);
  return Picture(title, Svg(title, svg, kHeight), (given.size() > 1 ? Legend(entries) : "") + cut);
}

std::string StageBar(const std::string& label, const std::vector<StageTime>& stages) {
  double all = 0;
  for (const StageTime& stage : stages) all += stage.ms;
  if (all <= 0) return "";
  constexpr double kBarHeight = 26;
  std::string svg;
  std::vector<LegendEntry> entries;
  double at = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const double width = stages[i].ms / all * kWidth;
    if (stages[i].ms <= 0) continue;
    const int colour = static_cast<int>(i);
    svg += "<rect x='" + Px(at) + "' y='0' width='" + Px(width) + "' height='" + Px(kBarHeight) +
           "' class='c" + std::to_string(colour) + "'/>";
    entries.push_back({stages[i].name + ShowNumber(" %.2f ms", stages[i].ms) +
                           ShowNumber(" (%.0f%%)", 100 * stages[i].ms / all),
                       colour});
    at += width;
  }
  return Picture(label + ShowNumber(": %.2f ms a step", all), Svg(label, svg, kBarHeight),
                 Legend(entries));
}

std::string CalibrationChart(const std::vector<CalibrationLine>& lines) {
  constexpr double kRadiusMax = 11;
  Axis x = {0, 0, kLeft, kWidth - kRight}, y = {0, 0, kHeight - kBottom, kTop};
  double most = 0;
  std::vector<LegendEntry> entries;
  for (const CalibrationLine& line : lines) {
    if (line.bins->empty()) continue;
    entries.push_back({line.label, line.colour});
    for (const CalibrationBin& bin : *line.bins) {
      x.high = std::max({x.high, bin.predicted, bin.observed});
      most = std::max(most, bin.weight);
    }
  }
  if (entries.empty() || most <= 0) return "";
  y.high = x.high;
  x.Settle(0.03);
  y.Settle(0.03);
  std::string svg = Frame(x, y) + LineTo(x.At(0), y.At(0), x.At(x.high), y.At(x.high), "diagonal");
  for (const CalibrationLine& line : lines) {
    for (const CalibrationBin& bin : *line.bins) {
      if (bin.weight <= 0) continue;
      svg += "<circle cx='" + Px(x.At(bin.predicted)) + "' cy='" + Px(y.At(bin.observed)) +
             "' r='" + Px(std::max(2.5, kRadiusMax * std::sqrt(bin.weight / most))) +
             "' class='bin c" + std::to_string(line.colour) + "'><title>predicted " +
             ShowNumber("%.4g", bin.predicted) + ", observed " + ShowNumber("%.4g", bin.observed) +
             ", " + ShowWhole(bin.weight) + " examples</title></circle>";
    }
  }
  return Picture("Calibration: observed share over predicted probability",
                 Svg("calibration", svg, kHeight), entries.size() > 1 ? Legend(entries) : "");
}

}  // namespace hdps
