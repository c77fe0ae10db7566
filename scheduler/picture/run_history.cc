// Reads lines of metrics.jsonl into curves.
#include "scheduler/picture/run_history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "common/platform/file_system.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr const char* kProgressFigures[] = {"train_loss", "examples_per_second", "learning_rate",
                                            "push_staleness"};

double NumberOf(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string TextOf(const Json& entry, const char* name) {
  const auto text = entry.find(name);
  return text != entry.end() && text->is_string() ? text->get<std::string>() : "";
}

// Fills the event of a line in which members change; returns false if it tells of something else.
// `last_loss`: the cause of the last loss.
bool FillChange(const Json& entry, std::string* last_loss, RunEvent* event) {
  const std::string kind = TextOf(entry, "event");
  if (kind == "lost") {
    event->warning = true;
    event->text = TextOf(entry, "member") + " was lost";
    event->cause = *last_loss = TextOf(entry, "cause");
    return true;
  }
  if (kind == "replaced") {
    event->text = TextOf(entry, "member") + " was replaced in place; nobody goes back";
    event->cause = *last_loss;
    event->seconds = NumberOf(entry.value("after_seconds", Json()));
    return true;
  }
  const auto stood = entry.find("stood_seconds");
  if (stood != entry.end() && stood->is_number()) event->seconds = stood->get<double>();
  const std::string step = std::to_string(event->step);
  if (kind == "went_back") {
    event->text = "the job goes on from step " + step;
    event->cause = *last_loss;
  } else if (kind == "scaled") {
    event->text = "the job goes on from step " + step + " with " +
                  std::to_string(entry.value("servers", 0)) + " servers and " +
                  std::to_string(entry.value("workers", 0)) + " workers";
  } else {
    return false;
  }
  return true;
}

}  // namespace

void RunHistory::Add(const std::string& name, const std::string& set, Clock step, double value,
                     uint64_t version) {
  auto curve = std::ranges::find_if(
      curves_, [&](const Curve& known) { return known.name() == name && known.set() == set; });
  if (curve == curves_.end()) {
    if (curves_.size() == kCurvesMax) return;
    curve = curves_.emplace(curves_.end(), name, set);
    if (curves_.size() == kCurvesMax) {
      TakeEvent({.version = version,
                 .step = step,
                 .warning = true,
                 .text = "the page shows " + std::to_string(kCurvesMax) +
                         " curves; further metrics and sets are in metrics.jsonl alone"});
    }
  }
  curve->Add(step, value, version);
}

void RunHistory::TakeLine(std::string_view line, uint64_t version, std::optional<double> time) {
  const Json entry = Json::parse(line, nullptr, false);
  if (!entry.is_object()) return;
  const Json& told = entry.contains("step") ? entry["step"] : Json();
  if (!told.is_number_integer()) return;
  const Clock step = told.get<Clock>();
  if (entry.contains("event")) {
    RunEvent event{.version = version, .time = time, .step = step};
    if (FillChange(entry, &last_loss_, &event)) TakeEvent(std::move(event));
    return;
  }
  changed_ = true;
  if (entry.contains("eval_metrics") && entry["eval_metrics"].is_object()) {
    const std::string set = TextOf(entry, "eval_set");
    std::erase_if(evaluations_, [&](const EvaluatedFigure& old) { return old.set == set; });
    for (const auto& [metric, value] : entry["eval_metrics"].items()) {
      evaluations_.push_back({set, metric, NumberOf(value), step});
      Add(metric, set, step, NumberOf(value), version);
    }
    return;
  }
  double push_staleness = 0;  // The panel of rows has the newest.
  double* const last[] = {&loss_, &examples_per_second_, &learning_rate_, &push_staleness};
  for (size_t i = 0; i < std::size(kProgressFigures); ++i) {
    const auto value = entry.find(kProgressFigures[i]);
    if (value == entry.end()) continue;
    *last[i] = NumberOf(*value);
    Add(kProgressFigures[i], "", step, *last[i], version);
  }
}

void RunHistory::TakeFile(FileSystem& files, const std::string& path, uint64_t version) {
  constexpr size_t kBlockBytes = size_t{1} << 16, kLineBytesMax = size_t{1} << 20;
  Result<std::unique_ptr<SequentialFile>> file = files.OpenSequential(path);
  if (!file.ok()) return;
  std::vector<char> block(kBlockBytes);
  std::string line;
  while (true) {
    const Result<size_t> read = (*file)->Read(std::as_writable_bytes(std::span(block)));
    if (!read.ok() || *read == 0) break;
    for (const char c : std::span(block).first(*read)) {
      if (c != '\n') {
        if (line.size() < kLineBytesMax) line += c;
        continue;
      }
      TakeLine(line, version, std::nullopt);
      line.clear();
    }
  }
}

void RunHistory::TakeEvent(RunEvent event) {
  events_.push_back(std::move(event));
  if (events_.size() > kEventsMax) events_.pop_front();
  changed_ = true;
}

void RunHistory::TakeCheckpoint(KnownCheckpoint checkpoint) {
  std::erase_if(checkpoints_,
                [&](const KnownCheckpoint& old) { return old.step == checkpoint.step; });
  checkpoints_.push_back(std::move(checkpoint));
  if (checkpoints_.size() > kCheckpointsMax) checkpoints_.pop_front();
  changed_ = true;
}

bool RunHistory::TakeChanged() { return std::exchange(changed_, false); }

}  // namespace hdps
