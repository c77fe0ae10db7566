// Files and lines of a run.
#include "scheduler/report/run_report.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/schedule.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

// Without a new example for so long, the speed is said to be zero.
constexpr TimeMs kStandstillMs = 3000;

// JSON has no NaN.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json Number(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Duration(double seconds) {
  const int64_t s = std::llround(std::min(seconds, 1e9));
  if (s >= 3600) {
    return Format("%" PRId64 ":%02d:%02d", s / 3600, static_cast<int>(s / 60 % 60),
                  static_cast<int>(s % 60));
  }
  return Format("%02d:%02d", static_cast<int>(s / 60), static_cast<int>(s % 60));
}

// How much of the whole job is done, 0..1; the epochs and max_steps, whichever ends it first.
double PartDone(uint32_t epochs, Clock max_steps, const ProgressState& state) {
  double part = (state.epoch + std::clamp(state.epoch_progress, 0.0, 1.0)) / std::max(epochs, 1u);
  if (max_steps > 0) {
    part = std::max(part, static_cast<double>(state.clock) / static_cast<double>(max_steps));
  }
  return std::min(part, 1.0);
}

double HitRate(const CacheTally& cache) {
  if (cache.lookups == 0) return 0;
  return static_cast<double>(cache.hits) / static_cast<double>(cache.lookups);
}

Json TallyJson(const CacheTally& cache) {
  return {{"hits", cache.hits},
          {"misses", cache.lookups - cache.hits},
          {"hit_rate", HitRate(cache)},
          {"swaps", cache.swaps},
          {"bytes", cache.bytes}};
}
Json TallyJson(const CollectiveTally& tally) {
  Json json;  // null where there were none.
  tally.ForEach([&json](const char* name, uint64_t most) {
    if (most > 0) json[name] = most;
  });
  return json;
}

// A float as it was written: 0.001, not 0.0010000000474974513.
Json Rounded(float value) {
  return Number(std::strtod(Format("%.7g", double{value}).c_str(), nullptr));
}

// By word; null where there is none.
Json FiguresJson(const std::vector<Figure>& figures) {
  Json json = Json::object();
  for (const Figure& figure : figures) json[figure.word] = Number(figure.value);
  return json;
}

// Bins of equal width from 0 to 1, those without an example among them.
Json BinsJson(const std::vector<CalibrationBin>& bins) {
  Json json = Json::array();
  for (const CalibrationBin& bin : bins) {
    json.push_back({{"weight", bin.weight},
                    {"predicted", bin.weight > 0 ? Json(bin.predicted) : Json()},
                    {"observed", bin.weight > 0 ? Json(bin.observed) : Json()}});
  }
  return json;
}

}  // namespace

uint32_t EpochOf(const ProgressState& state, uint32_t epochs) {
  const uint32_t counted = state.epoch_begun ? state.epoch + 1 : state.epoch;
  return std::clamp(counted, 1u, std::max(epochs, 1u));
}

RunReport::RunReport(FileSystem& files, const std::string& out, const Job& job, bool continued)
    : epochs_(job.train.epochs),
      max_steps_(static_cast<Clock>(job.train.max_steps)),
      dense_(job.tables.empty() ? TableSpec() : job.tables.back()) {
  const std::string path = JoinPath(out, "metrics.jsonl");
  Result<std::unique_ptr<WritableFile>> file =
      continued ? files.OpenAppend(path) : files.Create(path);
  if (file.ok()) {
    metrics_ = *std::move(file);
  } else {
    trouble_ = file.status().message();
  }
  const Status told = WriteFileAtomically(files, JoinPath(out, "job_as_run.json"),
                                          PrintJob(job) + "\n", Survives::kProcess);
  if (!told.ok() && !trouble_) trouble_ = told.message();
}

RunReport::~RunReport() {
  if (metrics_ == nullptr) return;
  if (const Status closed = metrics_->Close(); !closed.ok()) trouble_ = closed.message();
}

void RunReport::Begin(TimeMs now, const ProgressState& start) {
  begin_ = last_ = now;
  last_state_ = start;
  part_at_begin_ = PartDone(epochs_, max_steps_, start);
}

RunReport::Rates RunReport::RatesSinceLast(TimeMs now, const ProgressState& state) const {
  Rates rates;
  if (state.examples <= last_state_.examples) return rates;
  const double examples = static_cast<double>(state.examples - last_state_.examples);
  rates.loss = (state.loss_sum - last_state_.loss_sum) / examples;
  if (now > last_) rates.examples_per_second = examples * 1000 / static_cast<double>(now - last_);
  return rates;
}

std::string RunReport::Progress(TimeMs now, const ProgressState& state) {
  // Heartbeats lag behind the exact sums at the end of an epoch: no news yet is not standstill.
  if (state.examples <= last_state_.examples && !line_.empty() && now - last_ < kStandstillMs) {
    return line_;
  }
  const Rates rates = RatesSinceLast(now, state);
  const double seconds = static_cast<double>(now - begin_) / 1000;
  Json entry = {
      {"time", seconds},
      {"step", state.clock},
      {"epoch", EpochOf(state, epochs_)},
      {"epochs_done", state.epoch},
      {"examples", state.examples},
      {"examples_per_second", rates.examples_per_second},
      {"train_loss", Number(rates.loss)},
      {"learning_rate",
       Rounded(OptimizerAt(dense_, std::max<Clock>(1, state.clock), state.rate).learning_rate)}};
  if (state.cache.bytes > 0) entry["cache"] = TallyJson(state.cache);
  Append(Dump(entry, -1));
  std::string line = Format("epoch %u/%u  step %" PRId64 "  %s examples/s", EpochOf(state, epochs_),
                            epochs_, state.clock, ShowWhole(rates.examples_per_second).c_str());
  if (rates.loss) line += Format("  loss %.4f", *rates.loss);
  if (evaluation_ && std::isfinite(evaluation_->auc)) {
    line += Format("  AUC %.4f", evaluation_->auc);
  }
  const double part = PartDone(epochs_, max_steps_, state);
  if (part > part_at_begin_ && part < 1) {
    line += "  " + Duration(seconds * (1 - part) / (part - part_at_begin_)) + " left";
  }
  last_ = now;
  last_state_ = state;
  line_ = line;
  return line;
}

void RunReport::Lost(TimeMs now, const std::string& member, TimeMs silent_ms) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", last_state_.clock},
               {"event", "lost"},
               {"member", member},
               {"silent_seconds", static_cast<double>(silent_ms) / 1000}},
              -1));
}

void RunReport::Promoted(TimeMs now, uint32_t group, const std::string& from,
                         const std::string& to) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", last_state_.clock},
               {"event", "promoted"},
               {"group", group},
               {"from", from},
               {"to", to}},
              -1));
}

void RunReport::WentBack(TimeMs now, const ProgressState& state, TimeMs stood_ms) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", state.clock},
               {"event", "went_back"},
               {"from_step", last_state_.clock},
               {"stood_seconds", static_cast<double>(stood_ms) / 1000}},
              -1));
  last_ = now;
  last_state_ = state;
  line_.clear();
}

void RunReport::Scaled(TimeMs now, const ProgressState& state, const View& view,
                       const Moved& moved) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", state.clock},
               {"event", "scaled"},
               {"servers", view.servers.size()},
               {"workers", view.workers.size()},
               {"shards_moved", moved.shards},
               {"rows_moved", moved.rows},
               {"bytes_moved", moved.bytes},
               {"stood_seconds", static_cast<double>(moved.stood_ms) / 1000}},
              -1));
}

void RunReport::Evaluated(TimeMs now, const ProgressState& state, const Evaluation& evaluation,
                          const std::string& set, std::optional<double> rate) {
  Json entry = {{"time", static_cast<double>(now - begin_) / 1000},
                {"step", state.clock},
                {"epoch", EpochOf(state, epochs_)},
                {"epochs_done", state.epoch},
                {"examples", state.examples}};
  if (set.empty()) {
    evaluation_ = evaluation;
  } else {
    entry["eval_set"] = set;
  }
  entry["eval_examples"] = evaluation.examples;
  entry["eval_auc"] = Number(evaluation.auc);
  entry["eval_logloss"] = Number(evaluation.logloss);
  if (!evaluation.no_auc.empty()) entry["eval_auc_undefined"] = evaluation.no_auc;
  entry["eval_metrics"] = FiguresJson(evaluation.figures);
  if (rate) entry["rate"] = *rate;
  Append(Dump(entry, -1));
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
  if (metrics_ == nullptr) return;
  // A full disk may have cut the last line off; this one stands by itself once there is space.
  const std::string text = torn_ ? "\n" + line : line;
  const Status status = metrics_->Append(std::as_bytes(std::span(text)));
  torn_ = !status.ok();
  if (torn_) {
    trouble_ = status.message();
  } else if (trouble_told_) {
    trouble_.reset();
    trouble_told_ = false;
  }
}

std::optional<std::string> RunReport::TakeTrouble() {
  if (trouble_told_ || !trouble_) return std::nullopt;
  trouble_told_ = true;
  return trouble_;
}

namespace {

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

// An object by names; null where there is one set alone.
Json EvalSetsJson(const RunSummary& summary) {
  Json sets;
  for (const auto& [name, evaluation] : summary.eval_sets) {
    sets[name] = {{"examples", evaluation.examples},
                  {"auc", Number(evaluation.auc)},
                  {"logloss", Number(evaluation.logloss)}};
  }
  return sets;
}

// "step 382, AUC 0.920512, logloss 0.294100; OUT/checkpoint/step_..."
std::string BestText(const RunSummary& s) {
  std::string text = Format("step %" PRId64, *s.best_step);
  if (std::isfinite(s.best_auc)) text += Format(", AUC %.6f", s.best_auc);
  if (std::isfinite(s.best_logloss)) text += Format(", logloss %.6f", s.best_logloss);
  return text + (s.best_checkpoint.empty() ? "; not kept" : "; " + s.best_checkpoint);
}

}  // namespace

std::string DigestText(const uint64_t digest[2]) {
  return Format("%016" PRIx64 "%016" PRIx64, digest[0], digest[1]);
}

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
               {"eval_sets", EvalSetsJson(s)},
               {"best_step", s.best_step ? Json(*s.best_step) : Json()},
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
               {"steps_again", s.steps_again},
               {"examples_again", s.examples_again},
               {"checkpoint", s.checkpoint},
               {"staleness_max", s.staleness_max},
               {"bad_rows", s.bad_rows},
               {"cache", s.cache.bytes > 0 ? TallyJson(s.cache) : Json()},
               {"collectives", TallyJson(s.collectives)},
               {"resumed_from", s.resumed_from ? Json(*s.resumed_from) : Json()},
               {"stopped_at", s.stopped_at ? Json(*s.stopped_at) : Json()},
               {"refused_checkpoints", s.refused_checkpoints}};
  json["eval_metrics"] = s.evaluation ? FiguresJson(s.evaluation->figures) : Json();
  if (s.evaluation) {
    if (!s.evaluation->no_auc.empty()) json["eval_auc_undefined"] = s.evaluation->no_auc;
    if (!s.evaluation->bins.empty()) json["eval_calibration"] = BinsJson(s.evaluation->bins);
  }
  return WriteFileAtomically(files, JoinPath(out, "summary.json"), Dump(json, 2));
}

std::string SummaryTable(const RunSummary& s, const std::string& out) {
  std::string text = s.stopped_at ? "Stopped as asked, and saved.\n" : "Done.\n";
  if (!s.stopped_early.empty()) text = "Done early: " + s.stopped_early + ".\n";
  const auto row = [&text](const char* name, const std::string& value) {
    text += Format("  %-13s ", name) + value + "\n";
  };
  row("job", s.job + Format(" (%s, %u worker%s, %u server%s)", s.mode.c_str(), s.workers,
                            s.workers == 1 ? "" : "s", s.servers, s.servers == 1 ? "" : "s"));
  if (s.evaluation) {
    const std::string examples =
        " over " + ShowWhole(static_cast<double>(s.evaluation->examples)) + " examples";
    for (const Figure& figure : s.evaluation->figures) {
      const std::string name = "eval " + (figure.word == "auc" ? "AUC" : figure.word);
      const bool told = std::isfinite(figure.value);
      // The AUC and the logloss have the same reason.
      const bool why = !told && !figure.about.empty() && figure.word != "logloss";
      std::string value = told ? Format("%.6f", figure.value) : "undefined";
      if (why) value += ": " + figure.about;
      if (told && !figure.about.empty()) value += " (" + figure.about + ")";
      row(name.c_str(), value + (figure.word == "logloss" ? examples : ""));
    }
  }
  for (const auto& [name, evaluation] : s.eval_sets)
    row("of these", name + ": " + Describe(evaluation));
  if (s.best_step) row("best", BestText(s));
  if (s.train_logloss) row("train loss", Format("%.6f in the last epoch", *s.train_logloss));
  row("steps", ShowWhole(static_cast<double>(s.steps)) + " (" +
                   ShowWhole(static_cast<double>(s.examples)) + " examples)");
  row("speed",
      ShowWhole(s.examples_per_second) + " examples/s, " + Format("%.1f s in all", s.wall_seconds));
  row("parameters", ShowWhole(static_cast<double>(s.rows)) + " rows of embedding tables, " +
                        ShowWhole(static_cast<double>(s.dense_parameters)) + " in dense layers");
  row("digest", DigestText(s.digest));
  if (s.failures_survived > 0) {
    row("survived",
        Format("%u lost member%s; ", s.failures_survived, s.failures_survived == 1 ? "" : "s") +
            ShowWhole(static_cast<double>(s.steps_again)) + " steps trained again");
  }
  if (s.cache.bytes > 0) {
    row("kept rows", Format("%.2f %% of the keys, ", 100 * HitRate(s.cache)) +
                         ShowWhole(static_cast<double>(s.cache.swaps)) + " brought in, " +
                         ShowWhole(static_cast<double>(s.cache.bytes)) + " bytes at the workers");
  }
  if (!s.checkpoint.empty()) row("checkpoint", s.checkpoint);
  row("files", out + " (summary.json, metrics.jsonl, log/)");
  return text;
}

}  // namespace hdps
