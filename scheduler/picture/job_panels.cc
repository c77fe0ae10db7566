// The panels about the job: its health, training, checkpoints, events and settings.
#include <nlohmann/json.hpp>
#include <string>

#include "common/protocol/status_messages.h"
#include "scheduler/picture/json_text.h"
#include "scheduler/picture/panels.h"
#include "scheduler/why/explanation.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return NumberOrNull<Json>(value); }
Json Number(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

Json EventJson(const RunEvent& event) {
  return {{"time", Number(event.time)},
          {"step", event.step},
          {"kind", event.warning ? "warning" : "event"},
          {"text", event.text},
          {"cause", event.cause},
          {"seconds", Number(event.seconds)}};
}

Json CountsJson(const MemberCounts& counts) {
  return {{"alive", counts.alive}, {"expected", counts.expected}};
}

Json CurveJson(const Curve& curve, uint64_t since) {
  const bool whole = curve.changed() > since;
  Json points = Json::array();
  for (const Curve::Point& point : curve.points()) {
    if (!whole && point.version <= since) continue;
    points.push_back({point.step, Number(point.value)});
  }
  Json json = {{"name", curve.name()}, {"set", curve.set()}, {"points", std::move(points)}};
  if (whole) json["whole"] = true;
  return json;
}

}  // namespace

std::string HealthPanel(const JobPicture& picture) {
  const auto& events = picture.history->events();
  Json json = {
      {"sentence", picture.ended.value_or("")},
      {"advice", ""},
      {"kind", picture.failed ? "failed" : "ended"},
      {"state", picture.failed ? "failed" : "ended"},
      {"job", picture.frame->job},
      {"out", picture.frame->out},
      {"members",
       {{"servers", CountsJson(picture.servers)}, {"workers", CountsJson(picture.workers)}}},
      {"last_event", events.empty() ? Json() : EventJson(events.back())},
      {"missing", picture.status->missing}};
  if (!picture.ended) {
    const Explanation explanation = ExplanationOf(picture);
    json["sentence"] = explanation.sentence;
    json["advice"] = explanation.advice;
    json["kind"] = WhyKindName(explanation.kind);
    json["state"] = picture.status->state;
  }
  return JsonText(json);
}

std::string TrainingPanel(const JobPicture& picture, uint64_t since) {
  const RunHistory& history = *picture.history;
  const PictureFrame& frame = *picture.frame;
  Json evaluations = Json::array(), curves = Json::array();
  for (const EvaluatedFigure& figure : history.evaluations()) {
    evaluations.push_back({{"set", figure.set},
                           {"metric", figure.metric},
                           {"value", Number(figure.value)},
                           {"step", figure.step}});
  }
  for (const Curve& curve : history.curves()) {
    Json json = CurveJson(curve, since);
    if (since == 0 || !json["points"].empty()) curves.push_back(std::move(json));
  }
  return JsonText(Json{{"step", picture.progress.clock},
                       {"epoch", EpochOf(picture.progress, frame.epochs)},
                       {"epochs", frame.epochs},
                       {"epoch_progress", Number(picture.progress.epoch_progress)},
                       {"max_steps", frame.max_steps},
                       {"examples", picture.examples},
                       {"examples_per_second", Number(history.examples_per_second())},
                       {"loss", Number(history.loss())},
                       {"learning_rate", Number(history.learning_rate())},
                       {"line", picture.progress_line},
                       {"evaluations", std::move(evaluations)},
                       {"curves", std::move(curves)},
                       {"curves_from", since}});
}

std::string CheckpointsPanel(const JobPicture& picture, uint64_t since) {
  Json newest = Json::array();
  for (const KnownCheckpoint& one : picture.history->checkpoints()) {
    if (one.version <= since) continue;
    newest.push_back({{"step", one.step},
                      {"time", Number(one.time)},
                      {"bytes", one.bytes},
                      {"seconds", Number(one.seconds)},
                      {"kind", one.full ? "full" : "changes"},
                      {"verified", one.verified},
                      {"path", one.path}});
  }
  return JsonText(Json{{"newest", std::move(newest)}, {"resume", picture.frame->resume_command}});
}

std::string EventsPanel(const JobPicture& picture, uint64_t since) {
  Json events = Json::array();
  for (const RunEvent& event : picture.history->events()) {
    if (event.version > since) events.push_back(EventJson(event));
  }
  return JsonText(Json{{"events", std::move(events)}});
}

std::string ConfigurationPanel(const JobPicture& picture) {
  Json settings = Json::array();
  for (const SettingOrigin& setting : picture.frame->settings) {
    settings.push_back({{"path", setting.path}, {"value", setting.value}, {"from", setting.from}});
  }
  return JsonText(Json{{"settings", std::move(settings)}});
}

std::string AboutPanel(const JobPicture& picture) {
  Json arithmetic = Json::array();
  for (const std::string& kind : picture.arithmetic) {
    arithmetic.push_back({{"member", "workers"}, {"text", kind}});
  }
  return JsonText(Json{{"version", HDPS_VERSION},
                       {"arithmetic", std::move(arithmetic)},
                       {"python", nullptr},
                       {"links",
                        {{{"text", "figures of all members"}, {"path", "/api/v1/figures"}},
                         {{"text", "figures for Prometheus"}, {"path", "/metrics"}}}}});
}

}  // namespace hdps
