// Implements event files over lines of metrics.jsonl.
#include "scheduler/report/event_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "common/telemetry/figure_records.h"
#include "scheduler/report/event_records.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

// Of the seconds since 1970, for sscanf and snprintf. Until the year 2286 they have ten digits.
constexpr char kNameFormat[] = "events.out.tfevents.%" PRId64 ".hdps";

// The fields of a line of progress that are curves.
struct CurveField {
  const char* field;
  FigureId figure;
};
constexpr CurveField kCurveFields[] = {
    {"train_loss", FigureNamed("hdps_training_loss")},
    {"learning_rate", FigureNamed("hdps_learning_rate")},
    {"examples_per_second", FigureNamed("hdps_examples_per_second")},
};

std::string TagOf(FigureId figure) {
  constexpr std::string_view kPrefix = "hdps_";
  return std::string(RecordOf(figure).name.substr(kPrefix.size()));
}

std::vector<EventValue> ValuesIn(const Json& entry) {
  std::vector<EventValue> values;
  const auto take = [&values](const std::string& tag, FigureId figure, const Json& value) {
    // A figure that is not known, or not finite, is null.
    if (value.is_number()) values.push_back({tag, RecordOf(figure).help, value.get<double>()});
  };
  for (const CurveField& curve : kCurveFields) {
    if (entry.contains(curve.field)) take(TagOf(curve.figure), curve.figure, entry[curve.field]);
  }
  if (entry.contains("eval_metrics")) {
    constexpr FigureId kEvaluation = FigureNamed("hdps_evaluation");
    std::string group = TagOf(kEvaluation) + "/";
    if (entry.contains("eval_set")) group += entry["eval_set"].get<std::string>() + "/";
    for (const auto& [metric, value] : entry["eval_metrics"].items()) {
      take(group + metric, kEvaluation, value);
    }
  }
  return values;
}

// Returns a name that sorts behind those in the folder, also when the machine's time went back.
std::string NextName(FileSystem& files, const std::string& folder, double now) {
  int64_t seconds = static_cast<int64_t>(now);
  if (const auto names = files.List(folder); names.ok()) {
    for (const std::string& name : *names) {
      int64_t begun = 0;
      if (std::sscanf(name.c_str(), kNameFormat, &begun) == 1) {
        seconds = std::max(seconds, begun + 1);
      }
    }
  }
  char name[64];
  std::snprintf(name, sizeof name, kNameFormat, seconds);
  return name;
}

}  // namespace

EventFile::EventFile(FileSystem& files, std::string folder, std::string settings,
                     std::function<double()> unix_seconds)
    : files_(files),
      folder_(std::move(folder)),
      settings_(std::move(settings)),
      unix_seconds_(std::move(unix_seconds)) {
  trouble_.Note(Begin());
}

EventFile::~EventFile() {
  if (file_ != nullptr) static_cast<void>(file_->Close());
}

Status EventFile::Begin() {
  HDPS_RETURN_IF_ERROR(files_.MakeDirectoriesUnsynced(folder_));
  const double now = unix_seconds_();
  const std::string path = JoinPath(folder_, NextName(files_, folder_, now));
  HDPS_ASSIGN_OR_RETURN(file_, files_.Create(path));
  has_points_ = false;
  const Status written = Write(VersionRecord(now) + TextRecord(now, "settings", settings_));
  // A full disk must not be filled with beginnings of files.
  if (!written.ok()) static_cast<void>(files_.RemoveAll(path));
  return written;
}

Status EventFile::Write(const std::string& records) {
  const Status written = file_->Append(std::as_bytes(std::span(records)));
  if (!written.ok()) {
    static_cast<void>(file_->Close());
    file_ = nullptr;
  }
  return written;
}

void EventFile::TakeLine(const std::string& line) {
  const Json entry = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object() || !entry.contains("step")) return;
  const auto step = entry["step"].get<Clock>();
  const std::vector<EventValue> values = ValuesIn(entry);
  const bool went_back = entry.contains("event") && entry["event"] == "went_back";
  if (values.empty() && !went_back) return;
  if (file_ == nullptr) {
    if (const Status begun = Begin(); !begun.ok()) return trouble_.Note(begun);
  }
  const double now = unix_seconds_();
  std::string records;
  if (went_back) {
    records = SessionRecord(now, step + 1);
  } else if (!has_points_) {
    records = SessionRecord(now, step);  // An earlier file may have points of steps from here on.
  }
  if (!values.empty()) records += ValuesRecord(now, step, values);
  has_points_ = true;
  trouble_.Note(Write(records));
}

}  // namespace hdps
