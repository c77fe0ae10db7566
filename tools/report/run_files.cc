// Reads metrics.jsonl, summary.json, figures.json, the job and the logs.
#include "tools/report/run_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/show_number.h"
#include "common/protocol/manifest.h"
#include "worker/data/line_reader.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPointsMax = 4096;
constexpr size_t kEventsMax = 200;
constexpr size_t kLogLinesMax = 20;
constexpr uint64_t kFileBytesMax = 64u << 20;

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Converts "silent_seconds" to "silent seconds".
std::string Words(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

double NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

// Passes each line of a text file to `take` until it is done. Ends also with the file, at a line
// that is too long, or if the file cannot be read.
template <typename Take>
void EachLine(FileSystem& files, const std::string& path, const Take& take) {
  LineReader lines(files, {path}, {});
  if (!lines.Start().ok()) return;
  for (Line line;;) {
    const Result<bool> found = lines.Next(&line);
    if (!found.ok() || !*found) return;
    take(line);
  }
}

// Adds points to curves by their names.
//
// Invariant: steps of a curve do not fall, and it has at most kPointsMax points.
class Curves {
 public:
  explicit Curves(std::vector<Curve>* curves) : curves_(*curves) {}

  // Returns the curve of this name and set.
  Curve& Of(const std::string& name, const std::string& set = "") {
    const auto found = std::ranges::find_if(
        curves_, [&](const Curve& curve) { return curve.name == name && curve.set == set; });
    return found != curves_.end() ? *found : curves_.emplace_back(Curve{name, set});
  }

  static void Add(double step, double value, Curve* curve) {
    curve->points.push_back({step, value});
    if (curve->points.size() > kPointsMax) Halve(&curve->points);
  }

  // Removes the points behind `step`, which were lost and are trained again.
  void GoBackTo(double step) {
    for (Curve& curve : curves_) {
      std::erase_if(curve.points, [step](const auto& point) { return point.step > step; });
    }
  }

 private:
  // Replaces each pair of points by its mean.
  static void Halve(std::vector<Curve::Point>* points) {
    for (size_t i = 0; i + 1 < points->size(); i += 2) {
      const Curve::Point &a = (*points)[i], &b = (*points)[i + 1];
      (*points)[i / 2] = {b.step, (a.value + b.value) / 2};
    }
    points->resize(points->size() / 2);
  }

  std::vector<Curve>& curves_;
};

class RunReader {
 public:
  RunReader(FileSystem& files, const std::string& folder) : files_(files) { run_.folder = folder; }

  Result<RunFiles> Read() {
    const std::string metrics = JoinPath(run_.folder, "metrics.jsonl");
    const std::string summary = JoinPath(run_.folder, "summary.json");
    if (!files_.Exists(metrics) && !files_.Exists(summary)) {
      return Status(Code::kInvalidArgument,
                    run_.folder + ": there is " +
                        (files_.Exists(run_.folder) ? "neither metrics.jsonl nor summary.json in it"
                                                    : "no such folder") +
                        "; expected the --out of a run");
    }
    ReadSummary(summary);  // The summary tells the best step, so it comes first.
    ReadMetrics(metrics);
    ReadJob();
    ReadLogs();
    ReadFigures();
    return std::move(run_);
  }

 private:
  void ReadMetrics(const std::string& path) {
    uint64_t damaged = 0, lines = 0, last_line = 0, last_damaged = 0;
    EachLine(files_, path, [&](const Line& line) {
      ++lines;
      last_line = line.place.number;
      const Json entry = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
      if (entry.is_object()) return TakeEntry(entry);
      ++damaged;
      last_damaged = line.place.number;
    });
    if (lines == 0) run_.notes.push_back("metrics.jsonl has no line yet");
    if (damaged == 1 && last_damaged == last_line) {
      run_.notes.push_back("the last line of metrics.jsonl is cut off, and is left out");
    } else if (damaged > 0) {
      run_.notes.push_back(ShowWhole(static_cast<double>(damaged)) +
                           " lines of metrics.jsonl cannot be read, the last of them line " +
                           std::to_string(last_damaged) + "; they are left out");
    }
  }

  void TakeEntry(const Json& entry) {
    const double step = NumberOf(entry, "step");
    Curves training(&run_.training), evaluations(&run_.evaluations);
    // Also after a resume: its steps begin behind its checkpoint.
    if (step < last_step_) {
      training.GoBackTo(step);
      evaluations.GoBackTo(step);
    }
    last_step_ = step;
    if (entry.contains("event")) return TakeEvent(entry, step);
    TakeEvaluation(entry, step, &evaluations);
    for (const char* name :
         {"train_loss", "learning_rate", "examples_per_second", "push_staleness"}) {
      const auto value = entry.find(name);
      if (value == entry.end() || !value->is_number()) continue;
      Curves::Add(step, value->get<double>(), &training.Of(name));
    }
  }

  void TakeEvaluation(const Json& entry, double step, Curves* evaluations) {
    const auto set = entry.find("eval_set");
    const std::string of = set != entry.end() && set->is_string() ? set->get<std::string>() : "";
    const auto take = [&](const std::string& word, const Json& figure) {
      Curve& curve = evaluations->Of(word, of);  // An undefined figure keeps its place too.
      if (!figure.is_number()) return;
      Curves::Add(step, figure.get<double>(), &curve);
      curve.undefined.clear();
      if (step == run_.best_step) curve.at_best = figure.get<double>();
    };
    const bool evaluated = entry.contains("eval_metrics") || entry.contains("eval_auc");
    if (!evaluated) return;
    run_.last_evaluated = step;
    const auto figures = entry.find("eval_metrics");
    if (figures != entry.end() && figures->is_object()) {
      for (const auto& [word, figure] : figures->items()) take(word, figure);
    } else {  // Older runs have only auc and logloss.
      for (const char* word : {"auc", "logloss"}) {
        const auto figure = entry.find("eval_" + std::string(word));
        if (figure != entry.end() && figure->is_number()) take(word, *figure);
      }
    }
    const auto undefined = entry.find("eval_undefined");
    if (undefined == entry.end() || !undefined->is_object()) return;
    for (const auto& [word, why] : undefined->items())
      evaluations->Of(word, of).undefined = TextOf(why);
  }

  void TakeEvent(const Json& entry, double step) {
    if (run_.events.size() == kEventsMax) {
      run_.notes.push_back("only the first " + std::to_string(kEventsMax) + " events are shown");
    }
    if (run_.events.size() >= kEventsMax) return;
    RunEvent event = {NumberOf(entry, "time"), step, Words(TextOf(entry["event"]))};
    for (const auto& [name, value] : entry.items()) {
      if (name != "event" && name != "time" && name != "step") {
        event.what += ", " + Words(name) + " " + TextOf(value);
      }
    }
    run_.events.push_back(event);
  }

  void ReadSummary(const std::string& path) {
    const Result<std::string> text = ReadWholeFile(files_, path, kFileBytesMax);
    if (!text.ok()) {
      run_.notes.push_back("there is no summary.json: the run still goes on, or it died");
      return;
    }
    const Json summary = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!summary.is_object()) {
      run_.notes.push_back("summary.json cannot be read");
      return;
    }
    run_.finished = true;
    for (const auto& [name, value] : summary.items()) {
      if (name == "job") run_.job = TextOf(value);
      if (name == "best_step" && value.is_number()) run_.best_step = value.get<double>();
      if (value.is_primitive() && !value.is_null()) run_.summary.emplace_back(name, TextOf(value));
    }
    TakeCalibration(summary);
  }

  void TakeCalibration(const Json& object) {
    const auto bins = object.find("eval_calibration");
    if (bins == object.end() || !bins->is_array()) return;
    for (const Json& bin : *bins) {
      if (!bin.is_object() || NumberOf(bin, "weight") <= 0) continue;
      run_.calibration.push_back(
          {NumberOf(bin, "weight"), NumberOf(bin, "predicted"), NumberOf(bin, "observed")});
    }
  }

  void ReadJob() {
    const Result<std::string> text =
        ReadWholeFile(files_, JoinPath(run_.folder, "job_as_run.json"), kFileBytesMax);
    if (text.ok()) {
      run_.job_text = *text;
    } else if (const auto found = OpenCheckpoint(files_, run_.folder); found.ok()) {
      run_.job_text = found->manifest.job_json;
    }
    const Json job = Json::parse(run_.job_text, nullptr, /*allow_exceptions=*/false);
    if (!job.is_object()) {
      run_.notes.push_back("there is no job_as_run.json, and no checkpoint that tells the job");
      run_.job_text.clear();
      return;
    }
    if (const auto name = job.find("name"); run_.job.empty() && name != job.end()) {
      run_.job = TextOf(*name);
    }
    AddSettings("", job, &run_.settings);
    const Result<std::string> given =
        ReadWholeFile(files_, JoinPath(run_.folder, "job_as_given.json"), kFileBytesMax);
    if (!given.ok()) return;
    AddSettings("", Json::parse(*given, nullptr, /*allow_exceptions=*/false), &run_.given);
  }

  void ReadFigures() {
    const Result<std::string> text =
        ReadWholeFile(files_, JoinPath(run_.folder, "figures.json"), kFileBytesMax);
    if (!text.ok()) return;  // Runs of older versions have none.
    Json page = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!page.is_object()) {
      run_.notes.push_back("figures.json cannot be read");
      return;
    }
    for (const char* told_elsewhere : {"training", "events"}) page.erase(told_elsewhere);
    run_.last_page = page.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // A list of plain values is one setting.
  static void AddSettings(const std::string& path, const Json& value, RunFiles::Settings* to) {
    const bool plain_list = value.is_array() && std::ranges::all_of(value, [](const Json& item) {
                              return item.is_primitive();
                            });
    if (value.is_primitive() || plain_list) {
      to->emplace_back(path, TextOf(value));
      return;
    }
    for (const auto& [name, item] : value.items()) {
      // Items of a list use their own names: "model.tables.deep.dim".
      const bool named = value.is_array() && item.is_object() && item.contains("name");
      const std::string key = named ? TextOf(item["name"]) : name;
      AddSettings(path.empty() ? key : path + "." + key, item, to);
    }
  }

  void ReadLogs() {
    const std::string folder = JoinPath(run_.folder, "log");
    const Result<std::vector<std::string>> names = files_.List(folder);
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (!name.ends_with(".log")) continue;
      EachLine(files_, JoinPath(folder, name),
               [this](const Line& line) { TakeLogLine(std::string(line.text)); });
    }
    if (run_.steps_timed == 0) return;
    for (StageTime& stage : run_.stages) stage.ms /= run_.steps_timed;
  }

  // Parses a line "TIME LEVEL PROGRAM TEXT".
  void TakeLogLine(const std::string& line) {
    const size_t level = line.find(' ');
    if (level == line.npos || level + 3 >= line.size()) return;
    const size_t program = line.find(' ', level + 3);
    if (program == line.npos) return;
    const std::string text = line.substr(program + 1);
    if (text.starts_with("data: ")) Once(text.substr(6), &run_.data_lines);
    if (line[level + 1] == 'W') Once(text, &run_.warnings);
    TakeStages(text);
  }

  static void Once(const std::string& text, std::vector<std::string>* list) {
    if (list->size() < kLogLinesMax && std::ranges::find(*list, text) == list->end()) {
      list->push_back(text);
    }
  }

  // Parses the output of Describe(StepTimes).
  void TakeStages(const std::string& text) {
    const size_t at = text.find("ms a step: ");
    if (at == text.npos || !text.starts_with("epoch ")) return;
    unsigned long long until = 0, steps = 0;
    if (std::sscanf(text.c_str(), "epoch %*u until step %llu: %llu steps", &until, &steps) != 2) {
      return;
    }
    double all = 0, reader = 0, pull = 0, hidden = 0, compute = 0, dense = 0, kept = 0, push = 0;
    constexpr const char* kBegin =
        "ms a step: %lf in all, wait for reader %lf, pull %lf (%lf more behind other work), "
        "compute "
        "%lf, reduce dense %lf";
    if (std::sscanf(text.c_str() + at, kBegin, &all, &reader, &pull, &hidden, &compute, &dense) !=
        6) {
      return;
    }
    // Logs of older versions lack the hidden part of the reduction.
    const size_t rest = text.find(", kept rows ", at);
    if (rest == text.npos ||
        std::sscanf(text.c_str() + rest, ", kept rows %lf, push %lf", &kept, &push) != 2) {
      return;
    }
    const double others = all - reader - pull - compute - dense - kept - push;
    const std::array<StageTime, 7> parts = {{{"compute", compute},
                                             {"wait for reader", reader},
                                             {"pull", pull},
                                             {"push", push},
                                             {"reduce dense", dense},
                                             {"kept rows", kept},
                                             {"other", std::max(0.0, others)}}};
    if (run_.stages.empty()) run_.stages.assign(parts.begin(), parts.end());
    const auto times = static_cast<double>(steps);
    for (size_t i = 0; i < parts.size(); ++i) {
      StageTime& stage = run_.stages[i];
      stage.ms = (run_.steps_timed == 0 ? 0 : stage.ms) + parts[i].ms * times;
    }
    run_.steps_timed += times;
  }

  FileSystem& files_;
  RunFiles run_;
  double last_step_ = 0;
};

}  // namespace

Result<RunFiles> ReadRunFiles(FileSystem& files, const std::string& folder) {
  return RunReader(files, folder).Read();
}

}  // namespace hdps
