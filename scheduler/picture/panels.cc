// Joins the panels to documents.
#include "scheduler/picture/panels.h"
#include "scheduler/why/explanation.h"
#include "scheduler/why/why_facts.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace hdps {
namespace {

constexpr auto kNames = std::to_array<std::string_view>(
    {"health", "training", "where_time_goes", "stragglers", "rows", "checkpoints", "events",
     "configuration", "about", "figures", "page"});

std::string OnePanel(const JobPicture& picture, std::string_view panel, uint64_t since) {
  if (panel == "health") return HealthPanel(picture);
  if (panel == "training") return TrainingPanel(picture, since);
  if (panel == "where_time_goes") return TimePanel(picture);
  if (panel == "stragglers") return StragglersPanel(picture);
  if (panel == "rows") return RowsPanel(picture);
  if (panel == "checkpoints") return CheckpointsPanel(picture, since);
  if (panel == "events") return EventsPanel(picture, since);
  if (panel == "configuration") return ConfigurationPanel(picture);
  if (panel == "about") return AboutPanel(picture);
  return FiguresPanel(picture);
}

// Returns a document with these panels; where the time goes is called "time" in it.
std::string Document(const JobPicture& picture, std::span<const std::string_view> panels,
                     uint64_t since) {
  std::string text = "{\"schema\":1,\"version\":" + std::to_string(picture.version) +
                     ",\"unix_time\":" + std::to_string(picture.time);
  for (const std::string_view panel : panels) {
    const std::string_view name = panel == "where_time_goes" ? "time" : panel;
    text += ",\"" + std::string(name) + "\":" + OnePanel(picture, panel, since);
  }
  return text + "}";
}

}  // namespace

std::span<const std::string_view> PanelNames() { return kNames; }

std::optional<std::string> PanelJson(const JobPicture& picture, std::string_view panel,
                                     uint64_t since) {
  if (std::ranges::find(kNames, panel) == kNames.end()) return std::nullopt;
  if (since < picture.frame->first_version || since > picture.version) since = 0;
  if (panel != "page") {
    // A panel is an object, which gets the number of its form in front.
    std::string text = OnePanel(picture, panel, since);
    return text.insert(1, "\"schema\":1,\"picture\":" + std::to_string(picture.version) + ",");
  }
  const auto always = std::span(kNames).first(7), whole = std::span(kNames).first(9);
  return Document(picture, since == 0 ? whole : always, since);
}

std::string WholeJson(const JobPicture& picture) {
  return Document(picture, std::span(kNames).first(10), 0);
}

Explanation ExplanationOf(const JobPicture& picture) {
  WhyFacts facts{.now = *picture.status, .before = {}, .apart_ms = picture.apart_ms};
  if (picture.before != nullptr) facts.before = *picture.before;
  return Explain(facts);
}

Readings SumOf(const JobPicture& picture, bool workers) {
  Readings sum;
  const FigureLayout& layout = workers ? picture.frame->workers : picture.frame->servers;
  for (const MemberPicture& member : picture.members) {
    if (member.worker != workers || member.readings == nullptr) continue;
    if (member.readings->size() == layout.size()) AddReadings(layout, *member.readings, &sum);
  }
  return sum;
}

}  // namespace hdps
