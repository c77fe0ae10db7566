// Makes the tables from the list of figures.
#include "tests/common/telemetry/figure_reference.h"

#include <string_view>

#include "common/telemetry/figure_records.h"

namespace hdps {
namespace {

std::string_view TitleOf(FigureRole role) {
  switch (role) {
    case FigureRole::kProcess:
      return "Every process";
    case FigureRole::kWorker:
      return "A worker";
    case FigureRole::kServer:
      return "A server";
    case FigureRole::kScheduler:
      return "The scheduler";
  }
  return "";
}

std::string_view KindOf(FigureKind kind) {
  switch (kind) {
    case FigureKind::kCounter:
      return "counter";
    case FigureKind::kGauge:
      return "gauge";
    case FigureKind::kHistogram:
      return "histogram";
  }
  return "";
}

std::string_view LabelsOf(FigureLabels labels) {
  switch (labels) {
    case FigureLabels::kNone:
      return "";
    case FigureLabels::kStage:
      return "`stage`";
    case FigureLabels::kDirection:
      return "`direction`";
    case FigureLabels::kTable:
      return "`table`";
    case FigureLabels::kTableTier:
      return "`table`, `tier`";
    case FigureLabels::kMember:
      return "`role`, `state`";
    case FigureLabels::kEvaluation:
      return "`set`, `metric`";
  }
  return "";
}

}  // namespace

std::string PrintFigureReference() {
  std::string text;
  for (const FigureRole role :
       {FigureRole::kScheduler, FigureRole::kWorker, FigureRole::kServer, FigureRole::kProcess}) {
    text += "\n### " + std::string(TitleOf(role)) +
            "\n\n| figure | kind | labels | what it is |\n|---|---|---|---|\n";
    for (const FigureRecord& record : kFigures) {
      if (record.role != role) continue;
      text += "| `" + std::string(record.name) + "` | " + std::string(KindOf(record.kind)) + " | " +
              std::string(LabelsOf(record.labels)) + " | " + std::string(record.help) + " |\n";
    }
  }
  return text + "\n";
}

}  // namespace hdps
