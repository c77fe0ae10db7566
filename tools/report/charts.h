// Makes the pictures of a report: curves as data for the page's script, bars and calibration as
// SVG.
#pragma once

#include <string>
#include <vector>

#include "tools/report/run_files.h"

namespace hdps {

// A curve and its style. Colors are the page's c0, c1, ...
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

// Returns a figure of lines over steps; an empty text if no line has a point. It holds the points
// as JSON, which the page's script draws, and for browsers without scripts a table of some of them.
std::string LineChart(const std::string& title, const std::vector<ChartLine>& lines,
                      const std::vector<ChartMark>& marks = {});

// Returns JSON text as an element that holds data in HTML: no text in it can end the element.
std::string DataElement(const std::string& json);

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
