// Draws pictures as SVG in HTML, without a script: lines over steps, stages of a step, calibration.
#pragma once

#include <string>
#include <vector>

#include "tools/report/run_files.h"

namespace hdps {

// Escapes text for HTML: no character of it is markup.
std::string Escaped(const std::string& text);

// A curve and its style. Colors and dashes are the page's classes c0, c1, ...
struct ChartLine {
  std::string label;
  const Curve* curve = nullptr;
  int colour = 0;
  bool dots = false;  // Marks each point, for short curves.
  bool dashed = false;
};

// A step to mark by a vertical line in the color of a curve.
struct ChartMark {
  std::string label;
  double step = 0;
  int colour = 0;
};

// Draws lines over steps; returns an empty text if no line has a point. If the first values are far
// from the rest, the axis covers only the rest, and a note below the picture says so.
std::string LineChart(const std::string& title, const std::vector<ChartLine>& lines,
                      const std::vector<ChartMark>& marks = {});

// Draws a step as a bar of its stages, with a legend.
std::string StageBar(const std::string& label, const std::vector<StageTime>& stages);

// A curve of observed over predicted rates: a good model is near the diagonal. The area of a dot is
// its number of examples.
struct CalibrationLine {
  std::string label;
  const std::vector<CalibrationBin>* bins = nullptr;
  int colour = 0;
};
std::string CalibrationChart(const std::vector<CalibrationLine>& lines);

}  // namespace hdps
