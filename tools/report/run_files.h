// Reads what a run has left in its folder, as far as it exists and is intact.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/metrics/metric.h"
#include "common/platform/file_system.h"

namespace hdps {

// A number over the steps of a run.
struct Curve {
  struct Point {
    double step = 0, value = 0;
  };
  std::string name;                    // "train_loss", or the name of a metric, such as "auc".
  std::string set = {};                // Evaluation set by name; empty: the first set.
  std::vector<Point> points = {};      // In order of steps.
  std::optional<double> at_best = {};  // Value at RunFiles::best_step.
  // Reason why the last evaluation has no value; empty: it has one.
  std::string undefined = {};
};

// Mean milliseconds of one stage over all steps in the logs.
struct StageTime {
  std::string name;
  double ms = 0;
};

struct RunEvent {
  double time = 0, step = 0;
  std::string what;
};

// All that the folder tells about a run. Texts are as the files have them; the code that shows them
// must escape them.
struct RunFiles {
  std::string folder;
  std::string job;                                  // Name of the job; empty if no file has it.
  bool finished = false;                            // summary.json exists.
  std::vector<std::string> notes;                   // Files that are missing or damaged.
  std::vector<Curve> training;                      // train_loss, learning_rate, ...
  std::vector<Curve> evaluations;                   // auc, logloss, ... by evaluation set.
  std::optional<double> best_step, last_evaluated;  // Steps.
  // In the order of the file.
  std::vector<std::pair<std::string, std::string>> summary;
  using Settings = std::vector<std::pair<std::string, std::string>>;  // "train.batch_size", "256"
  Settings settings;  // All settings, with defaults.
  Settings given;     // Settings that the user gave.
  // The job with all defaults; empty if unknown.
  std::string job_text;
  std::vector<CalibrationBin> calibration;
  std::vector<RunEvent> events;
  std::vector<StageTime> stages;  // Their times add up to a step.
  double steps_timed = 0;
  // What the job's page showed last, as JSON of figures.json without curves and events, which the
  // other files tell; empty if unknown.
  std::string last_page;
  // Lines of the logs, each once.
  std::vector<std::string> data_lines, warnings;
};

// Reads `folder`, the --out of a run that has ended, is running, or died. Returns kInvalidArgument
// if it is not one.
Result<RunFiles> ReadRunFiles(FileSystem& files, const std::string& folder);

}  // namespace hdps
