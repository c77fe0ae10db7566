// What a run has left in its folder, as far as it is there and whole.
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
  std::string name;                    // "train_loss", or the word of a metric, such as "auc".
  std::string set = {};                // Of an evaluation: its set's name; empty: the first set.
  std::vector<Point> points = {};      // By step.
  std::optional<double> at_best = {};  // At RunFiles::best_step.
  std::string undefined = {};          // Why the last evaluation gave it no value; empty: it did.
};

// Of all steps that the logs tell of; what a stage took of a step, in milliseconds.
struct StageTime {
  std::string name;
  double ms = 0;
};

struct RunEvent {
  double time = 0, step = 0;
  std::string what;
};

// Texts are as the files have them: whoever shows them makes them harmless.
struct RunFiles {
  std::string folder;
  std::string job;                                  // Its name; empty where no file tells it.
  bool finished = false;                            // summary.json is there.
  std::vector<std::string> notes;                   // What is not there, or damaged.
  std::vector<Curve> training;                      // train_loss, learning_rate, ...
  std::vector<Curve> evaluations;                   // auc, logloss, ... of each set.
  std::optional<double> best_step, last_evaluated;  // Steps.
  std::vector<std::pair<std::string, std::string>> summary;           // In the order of the file.
  using Settings = std::vector<std::pair<std::string, std::string>>;  // "train.batch_size", "256"
  Settings settings;                                                  // With all defaults.
  Settings given;                                                     // Those that a person gave.
  std::string job_text;  // The job with all defaults, or nothing.
  std::vector<CalibrationBin> calibration;
  std::vector<RunEvent> events;
  std::vector<StageTime> stages;  // They add up to a step.
  double steps_timed = 0;
  std::vector<std::string> data_lines, warnings;  // Of the logs, each once.
};

// `folder` is the --out of a run that has ended, still goes on, or died. kInvalidArgument where it
// is none.
Result<RunFiles> ReadRunFiles(FileSystem& files, const std::string& folder);

}  // namespace hdps
