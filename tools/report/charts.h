// Pictures as SVG inside HTML, without a script: lines over steps, shares of a bar, calibration.
#pragma once

#include <string>
#include <vector>

#include "tools/report/run_files.h"

namespace hdps {

// The text as HTML shows it: no character of it is markup.
std::string Escaped(const std::string& text);

// A curve and how it is drawn: colours and dashes are classes of the page, c0, c1, ...
struct ChartLine {
  std::string label;
  const Curve* curve = nullptr;
  int colour = 0;
  bool dots = false;  // Each point has one: for few points.
  bool dashed = false;
};

// A step that is pointed out, by a vertical line in the colour of that curve.
struct ChartMark {
  std::string label;
  double step = 0;
  int colour = 0;
};

// Lines over steps. The axis of values is cut to the bulk of them where the first are far off,
// which is said under the picture. Empty where no line has a point.
std::string LineChart(const std::string& title, const std::vector<ChartLine>& lines,
                      const std::vector<ChartMark>& marks = {});

// A bar cut into the stages of a step, with a legend.
std::string StageBar(const std::string& label, const std::vector<StageTime>& stages);

// Observed over predicted; the better, the nearer the diagonal. Areas of dots are examples.
struct CalibrationLine {
  std::string label;
  const std::vector<CalibrationBin>* bins = nullptr;
  int colour = 0;
};
std::string CalibrationChart(const std::vector<CalibrationLine>& lines);

}  // namespace hdps
