// Writes the files and lines of a run.
#include "scheduler/report/run_report.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/schedule.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/file_identity.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/view.h"
#include "scheduler/report/event_file.h"
#include "scheduler/report/setting_changes.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;
// JSON has no NaN.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json Number(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

std::string Dump(const Json& json, int indent) {
  return EscapeJson(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
}

// The result has at most 159 characters.
template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

Json TallyJson(const CacheTally& cache) {
  return {{"hits", cache.hits},
          {"misses", cache.lookups - cache.hits},
          {"hit_rate", HitRate(cache)},
          {"swaps", cache.swaps},
          {"bytes", cache.bytes}};
}

// Figures by name; null if there are none.
Json FiguresJson(const std::vector<Figure>& figures) {
  Json json = Json::object();
  for (const Figure& figure : figures) json[figure.word] = Number(figure.value);
  return json;
}

// Why figures have no value, by name; null if all have one.
Json UndefinedJson(const std::vector<Figure>& figures) {
  Json json;
  for (const Figure& figure : figures) {
    if (!std::isfinite(figure.value) && !figure.about.empty()) json[figure.word] = figure.about;
  }
  return json;
}

// After this long without new examples the speed is reported as zero.
constexpr TimeMs kStandstillMs = 3000;

std::string Duration(double seconds) {
  const int64_t s = std::llround(std::min(seconds, 1e9));
  if (s >= 3600) {
    return Format("%" PRId64 ":%02d:%02d", s / 3600, static_cast<int>(s / 60 % 60),
                  static_cast<int>(s % 60));
  }
  return Format("%02d:%02d", static_cast<int>(s / 60), static_cast<int>(s % 60));
}

// Returns the completed part of the whole job, 0..1, by epochs or max_steps, whichever ends it
// first.
double PartDone(uint32_t epochs, Clock max_steps, const ProgressState& state) {
  double part = (state.epoch + std::clamp(state.epoch_progress, 0.0, 1.0)) / std::max(epochs, 1u);
  if (max_steps > 0) {
    part = std::max(part, static_cast<double>(state.clock) / static_cast<double>(max_steps));
  }
  return std::min(part, 1.0);
}

// Returns a float as it was written: 0.001, not 0.0010000000474974513.
Json Rounded(float value) {
  return Number(std::strtod(Format("%.7g", double{value}).c_str(), nullptr));
}

// Returns the table whose learning rate is shown: the dense one, or the first one without layers.
TableSpec TableOfRates(const Job& job) {
  if (job.tables.empty()) return {};
  return IsTablesJob(job) ? job.tables.front() : job.tables.back();
}

}  // namespace

uint32_t EpochOf(const ProgressState& state, uint32_t epochs) {
  const uint32_t counted = state.epoch_begun ? state.epoch + 1 : state.epoch;
  return std::clamp(counted, 1u, std::max(epochs, 1u));
}

RunReport::RunReport(FileSystem& files, const std::string& out, const Job& job,
                     const std::string& given, bool continued, bool tensorboard)
    : epochs_(job.train.epochs),
      max_steps_(static_cast<Clock>(job.train.max_steps)),
      learning_rate_([table = TableOfRates(job)](Clock step, double rate) {
        return OptimizerAt(table, step, rate).learning_rate;
      }),
      has_layers_(!IsTablesJob(job)) {
  const std::string path = JoinPath(out, "metrics.jsonl");
  const Result<FileIdentity> there = IdentityOf(files, path);
  const bool is_pipe = there.ok() && !there->plain;  // Opening it would wait for its other end.
  Result<std::unique_ptr<WritableFile>> file =
      continued && !is_pipe ? files.OpenAppend(path) : files.Create(path);
  const auto keep = [&](const char* name, const std::string& text) {
    trouble_.Note(WriteFileAtomically(files, JoinPath(out, name), text, Survives::kProcess));
  };
  const std::string settings = PrintJob(job) + "\n";
  keep("job_as_run.json", settings);
  if (!given.empty()) keep("job_as_given.json", given);
  trouble_.Note(file.status());
  if (file.ok()) metrics_ = *std::move(file);
  if (tensorboard) {
    events_ = std::make_unique<EventFile>(files, JoinPath(out, "tensorboard"),
                                          "```json\n" + settings + "```\n",
                                          [] { return static_cast<double>(UnixMs()) / 1000; });
  }
}

RunReport::~RunReport() {
  if (metrics_ == nullptr) return;
  static_cast<void>(metrics_->Close());
}

void RunReport::Begin(TimeMs now, const ProgressState& start) {
  begin_ = last_ = now;
  last_state_ = start;
  speed_.Begin(now, start.examples);
  part_at_begin_ = PartDone(epochs_, max_steps_, start);
}

void RunReport::GoOn(TimeMs now) {
  last_ = now;
  speed_.GoOn(now);
}

std::optional<double> RunReport::LossSinceLast(const ProgressState& state) const {
  if (!has_layers_ || state.examples <= last_state_.examples) return std::nullopt;
  return (state.loss_sum - last_state_.loss_sum) /
         static_cast<double>(state.examples - last_state_.examples);
}

std::string RunReport::Progress(TimeMs now, const ProgressState& state) {
  // Heartbeats lag behind the exact sums at the end of an epoch, so no news is not yet a
  // standstill.
  if (state.examples <= last_state_.examples && now - last_ < kStandstillMs) return line_;
  const std::optional<double> speed = speed_.At(now, state.examples);
  const std::optional<double> loss = LossSinceLast(state);
  const double seconds = static_cast<double>(now - begin_) / 1000;
  Json entry = {
      {"time", seconds},
      {"step", state.clock},
      {"epoch", EpochOf(state, epochs_)},
      {"epochs_done", state.epoch},
      {"examples", state.examples},
      {"examples_per_second", Number(speed)},
      {"train_loss", Number(loss)},
      {"learning_rate", Rounded(learning_rate_(std::max<Clock>(1, state.clock), state.rate))}};
  if (state.cache.bytes > 0) entry["cache"] = TallyJson(state.cache);
  if (state.push_staleness) entry["push_staleness"] = Number(state.push_staleness);
  Append(Dump(entry, -1));
  std::string line;
  if (has_layers_) line = Format("epoch %u/%u  ", EpochOf(state, epochs_), epochs_);
  line += Format("step %" PRId64, state.clock);
  if (speed) line += "  " + ShowWhole(*speed) + " examples/s";
  if (loss) line += Format("  loss %.4f", *loss);
  const std::optional<Evaluation>& shown = evaluation_ ? evaluation_ : progressive_;
  if (shown && !shown->figures.empty()) {
    const Figure& first = shown->figures.front();
    if (std::isfinite(first.value)) line += "  " + ShownWord(first) + Format(" %.4f", first.value);
  }
  const double part = PartDone(epochs_, max_steps_, state);
  if (part > part_at_begin_ && part < 1) {
    line += "  " + Duration(seconds * (1 - part) / (part - part_at_begin_)) + " left";
  }
  last_ = now;
  last_state_ = state;
  return line_ = line;
}

void RunReport::Evaluated(TimeMs now, const ProgressState& state, const Evaluation& evaluation,
                          const std::string& set, std::optional<double> rate) {
  Json entry = {{"time", static_cast<double>(now - begin_) / 1000},
                {"step", state.clock},
                {"epoch", EpochOf(state, epochs_)},
                {"epochs_done", state.epoch},
                {"examples", state.examples}};
  if (set.empty()) evaluation_ = evaluation;
  if (set == kProgressiveName) progressive_ = evaluation;
  if (!set.empty()) entry["eval_set"] = set;
  entry["eval_examples"] = evaluation.by_program ? Json() : Json(evaluation.examples);
  entry["eval_auc"] = Number(evaluation.auc);
  entry["eval_logloss"] = Number(evaluation.logloss);
  if (!evaluation.no_auc.empty()) entry["eval_auc_undefined"] = evaluation.no_auc;
  entry["eval_metrics"] = FiguresJson(evaluation.figures);
  if (const Json why = UndefinedJson(evaluation.figures); !why.is_null()) {
    entry["eval_undefined"] = why;
  }
  if (rate) entry["rate"] = *rate;
  const std::string line = Dump(entry, -1);
  Append(line);
  if (evaluation_listener_) evaluation_listener_(line);
}

void RunReport::RateFell(TimeMs now, Clock clock, double rate, const std::string& why) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", clock},
               {"event", "rate_fell"},
               {"rate", rate},
               {"why", why}},
              -1));
}

void RunReport::Append(const std::string& line) {
  if (events_ != nullptr) events_->TakeLine(line);
  if (line_listener_) line_listener_(line);
  if (metrics_ == nullptr) return;
  // A full disk may have cut the last line off; the next one begins on a line of its own.
  const std::string text = torn_ ? "\n" + line : line;
  const Status status = metrics_->Append(std::as_bytes(std::span(text)));
  torn_ = !status.ok();
  trouble_.Note(status);
}

std::optional<std::string> RunReport::TakeTrouble() {
  constexpr char kLasts[] = " is not written while this lasts: ";
  if (const auto trouble = trouble_.Take()) return "metrics.jsonl" + (kLasts + *trouble);
  if (events_ == nullptr) return std::nullopt;
  if (const auto trouble = events_->TakeTrouble())
    return "TensorBoard's file" + (kLasts + *trouble);
  return std::nullopt;
}

namespace {

Json TallyJson(const CollectiveTally& tally) {
  Json json;  // null if there were none.
  tally.ForEach([&json](const char* name, uint64_t most) {
    if (most > 0) json[name] = most;
  });
  return json;
}

// Bins of equal width from 0 to 1, including those without examples.
Json BinsJson(const std::vector<CalibrationBin>& bins) {
  Json json = Json::array();
  for (const CalibrationBin& bin : bins) {
    json.push_back({{"weight", bin.weight},
                    {"predicted", bin.weight > 0 ? Json(bin.predicted) : Json()},
                    {"observed", bin.weight > 0 ? Json(bin.observed) : Json()}});
  }
  return json;
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

// An object by names; null if there is none.
Json EvalSetsJson(const std::vector<std::pair<std::string, Evaluation>>& named) {
  Json sets;
  for (const auto& [name, evaluation] : named) {
    sets[name] = {{"examples", evaluation.examples},
                  {"auc", Number(evaluation.auc)},
                  {"logloss", Number(evaluation.logloss)},
                  {"metrics", FiguresJson(evaluation.figures)}};
    const Json why = UndefinedJson(evaluation.figures);
    if (!why.is_null()) sets[name]["undefined"] = why;
  }
  return sets;
}

}  // namespace

Status WriteSummary(FileSystem& files, const std::string& out, const RunSummary& s) {
  Json json = {{"job", s.job},
               {"mode", s.mode},
               {"workers", s.workers},
               {"servers", s.servers},
               {"steps", s.steps},
               {"examples", s.examples},
               {"train_logloss", Number(s.train_logloss)},
               {"eval_logloss", s.evaluation ? Number(s.evaluation->logloss) : Json()},
               {"eval_auc", s.evaluation ? Number(s.evaluation->auc) : Json()},
               {"eval_sets", EvalSetsJson(s.eval_sets)},
               {"best_step", s.best_step ? Json(*s.best_step) : Json()},
               {"best_metric", s.best_step ? TextOrNull(s.best_metric) : Json()},
               {"best_value", s.best_step ? Number(s.best_value) : Json()},
               {"best_auc", s.best_step ? Number(s.best_auc) : Json()},
               {"best_logloss", s.best_step ? Number(s.best_logloss) : Json()},
               {"best_checkpoint", TextOrNull(s.best_checkpoint)},
               {"stopped_early", TextOrNull(s.stopped_early)},
               {"examples_per_second", Number(s.examples_per_second)},
               {"wall_seconds", s.wall_seconds},
               {"digest", DigestText(s.digest)},
               {"rows", s.rows},
               {"dense_parameters", s.dense_parameters},
               {"dense_rows", s.dense_rows},
               {"rows_admitted", s.row_counts.admitted},
               {"gradients_refused", s.row_counts.refused},
               {"rows_evicted", s.row_counts.evicted},
               {"rows_fetched", s.row_counts.fetched},
               {"rows_on_disk", s.row_counts.on_disk},
               {"row_bytes", s.row_bytes},
               {"server_bytes_max", s.server_bytes_max},
               {"failures_survived", s.failures_survived},
               {"leaves", s.leaves},
               {"steps_again", s.steps_again},
               {"examples_again", s.examples_again},
               {"stood_seconds", static_cast<double>(s.stood_ms) / 1000},
               {"checkpoint", s.checkpoint},
               {"staleness_max", s.staleness_max},
               {"bad_rows", s.bad_rows},
               {"unknown_ids", s.unknown_ids},
               {"cache", s.cache.bytes > 0 ? TallyJson(s.cache) : Json()},
               {"collectives", TallyJson(s.collectives)},
               {"resumed_from", s.resumed_from ? Json(*s.resumed_from) : Json()},
               {"stopped_at", s.stopped_at ? Json(*s.stopped_at) : Json()},
               {"refused_checkpoints", s.refused_checkpoints},
               {"changes", Json::parse(PrintChanges(s.changes))}};
  if (s.progressive) json.update(EvalSetsJson({{kProgressiveName, *s.progressive}}));
  json["eval_metrics"] = s.evaluation ? FiguresJson(s.evaluation->figures) : Json();
  if (s.evaluation) {
    if (!s.evaluation->no_auc.empty()) json["eval_auc_undefined"] = s.evaluation->no_auc;
    const Json why = UndefinedJson(s.evaluation->figures);
    if (!why.is_null()) json["eval_undefined"] = why;
    if (!s.evaluation->bins.empty()) json["eval_calibration"] = BinsJson(s.evaluation->bins);
  }
  return WriteFileAtomically(files, JoinPath(out, "summary.json"), Dump(json, 2));
}

}  // namespace hdps
