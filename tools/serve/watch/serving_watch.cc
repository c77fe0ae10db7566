// Adds up answers, and makes samples of the sums when somebody asks.
#include "tools/serve/watch/serving_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "common/telemetry/process_meters.h"
#include "common/telemetry/process_usage.h"
#include "common/telemetry/prometheus_text.h"

namespace hdps {
namespace {

constexpr size_t kFeaturesTold = 5;

size_t LabelOfCode(int code) {
  for (size_t i = 0; i + 1 < kCodeLabels.size(); ++i) {
    if (std::to_string(code) == kCodeLabels[i]) return i;
  }
  return kCodeLabels.size() - 1;
}

std::string Percent(double share) { return ShowNumber("%.3g", 100 * share) + "%"; }

}  // namespace

ServingWatch::ServingWatch(ServedModel& model, MonotonicClock& clock, ServingWatchOptions options)
    : model_(model),
      clock_(clock),
      options_(std::move(options)),
      meters_(FigureLayout(FigureRole::kServing, model.features().size())),
      window_(model.features().size(), options_.tasks),
      feature_far_(model.features().size()) {}

void ServingWatch::Saw(const Answered& answered) {
  meters_.Observe(FigureNamed("hdps_serving_request_seconds"), answered.time_ns,
                  static_cast<size_t>(answered.protocol));
  if (answered.code != 200) {
    meters_.Add(FigureNamed("hdps_serving_errors_total"), 1, LabelOfCode(answered.code));
  }
  if (answered.request == nullptr || answered.answer == nullptr) return;
  meters_.Add(FigureNamed("hdps_serving_rows_total"), answered.answer->rows);
  if (answered.answer->begins_batch) meters_.Add(FigureNamed("hdps_serving_batches_total"), 1);
  CountKeys(*answered.answer);
  window_.Add(*answered.request, *answered.answer);
  if (options_.log != nullptr) options_.log->Saw(answered);
}

void ServingWatch::CountKeys(const ScoreAnswer& answer) {
  for (size_t f = 0; f < std::min(model_.features().size(), answer.keys.size()); ++f) {
    meters_.Add(FigureNamed("hdps_serving_keys_total"), answer.keys[f], f);
    meters_.Add(FigureNamed("hdps_serving_unknown_keys_total"), answer.unknown_keys[f], f);
  }
}

void ServingWatch::Turn() {
  if (!model_.ready()) return;
  ScoreEvaluation();
  if (const AnswerTotals now = window_.Read();
      now.rows < kDriftRows || now.requests < kDriftRequests) {
    return;
  }
  const AnswerTotals window = window_.Take();
  meters_.Set(FigureNamed("hdps_serving_mean_prediction"), window.prediction.Mean());
  if (evaluation_) Compare(window);
}

void ServingWatch::ScoreEvaluation() {
  const Clock step = model_.step();
  const int64_t now = clock_.NowMs();
  if (!options_.evaluation || step == scored_step_ || now < score_after_ms_) return;
  scored_step_ = step;
  score_after_ms_ = now + kScoreEveryMs;
  Result<AnswerTotals> scored = options_.evaluation->Score(model_, options_.tasks);
  if (!scored.ok()) {
    if (!std::exchange(score_failed_, true)) {
      options_.warn("drift is not watched, for the job's evaluation data cannot be scored: " +
                    scored.status().message());
    }
    return;
  }
  evaluation_ = *std::move(scored);
  static_cast<void>(window_.Take());  // It begins anew.
  meters_.Set(FigureNamed("hdps_serving_evaluation_mean_prediction"),
              evaluation_->prediction.Mean());
  for (size_t f = 0; f < feature_far_.size(); ++f) {
    meters_.Set(FigureNamed("hdps_serving_evaluation_unknown_share"),
                evaluation_->unknown[f].Mean(), f);
  }
}

void ServingWatch::Compare(const AnswerTotals& window) {
  const std::string over = " over the last " + ShowWhole(window.rows) + " rows";
  const Difference of_prediction = PredictionDifference(window, *evaluation_);
  const bool far = of_prediction.far(kDriftDeviations);
  meters_.Set(FigureNamed("hdps_serving_prediction_drift"), far ? 1 : 0);
  if (std::exchange(prediction_far_, far) != far) {
    options_.warn(std::string(far ? "predictions drift" : "predictions are in line again") +
                  ": their mean is " + ShowNumber("%.4g", window.prediction.Mean()) + over +
                  ", and " + ShowNumber("%.4g", evaluation_->prediction.Mean()) +
                  " over the job's evaluation data, " + ShowNumber("%.2g", of_prediction.size) +
                  " of its standard deviation away");
  }
  std::string begun, ended;
  size_t num_begun = 0, num_ended = 0;
  for (size_t f = 0; f < feature_far_.size(); ++f) {
    const bool now = UnknownDifference(window.unknown[f], evaluation_->unknown[f]).far(kDriftShare);
    meters_.Set(FigureNamed("hdps_serving_feature_drift"), now ? 1 : 0, f);
    if (feature_far_[f] == now) continue;
    feature_far_[f] = now;
    if (++(now ? num_begun : num_ended) > kFeaturesTold) continue;
    std::string& told = now ? begun : ended;
    told += (told.empty() ? "'" : ", '") + EscapeUntrusted(model_.features()[f]) + "' " +
            Percent(window.unknown[f].Mean()) + " and " + Percent(evaluation_->unknown[f].Mean());
  }
  const auto warn = [&](const std::string& told, size_t count, const std::string& what) {
    if (count == 0) return;
    const std::string more =
        count > kFeaturesTold ? " and " + std::to_string(count - kFeaturesTold) + " more" : "";
    options_.warn(what + over + " and over the job's evaluation data: " + told + more);
  };
  warn(begun, num_begun,
       "features drift, so look whether their values are written as in training; keys without a "
       "row");
  warn(ended, num_ended, "features are in line again; keys without a row");
}

void ServingWatch::SetVersions(const VersionFacts& facts) const {
  const int64_t age_ms = model_.ready() ? clock_.NowMs() - facts.taken_ms : 0;
  meters_.Set(FigureNamed("hdps_serving_version_age_seconds"), static_cast<double>(age_ms) / 1000);
  size_t kind = 0;
  for (const VersionFacts::Refreshes& of : {facts.whole, facts.deltas}) {
    meters_.SetTotal(FigureNamed("hdps_serving_refreshes_total"), of.count, kind);
    meters_.SetTotal(FigureNamed("hdps_serving_refresh_seconds_total"),
                     static_cast<uint64_t>(of.ns), kind);
    meters_.SetTotal(FigureNamed("hdps_serving_refresh_bytes_total"), of.bytes, kind++);
  }
  static_assert(kRefusalLabels.size() == kRefusals);
  for (size_t reason = 0; reason < kRefusals; ++reason) {
    meters_.SetTotal(FigureNamed("hdps_serving_refused_versions_total"), facts.refused[reason],
                     reason);
  }
}

std::vector<Sample> ServingWatch::Samples() const {
  if (model_.ready()) {
    meters_.Set(FigureNamed("hdps_serving_step"), static_cast<double>(model_.step()));
  }
  if (options_.versions) SetVersions(options_.versions());
  if (options_.log != nullptr) {
    meters_.SetTotal(FigureNamed("hdps_serving_logged_rows_total"), options_.log->logged_rows());
    meters_.SetTotal(FigureNamed("hdps_serving_unlogged_rows_total"),
                     options_.log->unlogged_rows());
  }
  std::vector<Sample> samples = SamplesOf(meters_.layout(), meters_.Read(), model_.features());
  for (Sample& sample : samples) {
    sample.labels.insert(sample.labels.begin(), {"model", model_.note().name});
  }
  return samples;
}

void ServingWatch::Close() {
  if (options_.log != nullptr) options_.log->Close();
}

std::string ServingMetrics(FileSystem& files, const std::vector<const ServingWatch*>& models) {
  Meters process(FigureLayout(FigureRole::kProcess, 0));
  SetProcess(ReadProcessUsage(files), &process);
  std::vector<Sample> samples = SamplesOf(process.layout(), process.Read(), {});
  for (const ServingWatch* model : models)
    std::ranges::move(model->Samples(), std::back_inserter(samples));
  return PrometheusText(samples);
}

}  // namespace hdps
