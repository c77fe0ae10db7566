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
    case FigureRole::kServing:
      return "A served model";
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

std::string_view OwnLabels(FigureLabels labels) {
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
    case FigureLabels::kFeature:
      return "`feature`";
    case FigureLabels::kProtocol:
      return "`protocol`";
    case FigureLabels::kCode:
      return "`code`";
    case FigureLabels::kRefresh:
      return "`kind`";
    case FigureLabels::kRefusal:
      return "`reason`";
    case FigureLabels::kShard:
      return "`shard`, `server`";
  }
  return "";
}

std::string LabelsOf(const FigureRecord& record) {
  const std::string own(OwnLabels(record.labels));
  if (record.role != FigureRole::kServing) return own;
  return own.empty() ? "`model`" : "`model`, " + own;
}

}  // namespace

std::string PrintFigureReference() {
  std::string text;
  for (const FigureRole role : {FigureRole::kScheduler, FigureRole::kWorker, FigureRole::kServer,
                                FigureRole::kServing, FigureRole::kProcess}) {
    text += "\n### " + std::string(TitleOf(role)) +
            "\n\n| figure | kind | labels | what it is |\n|---|---|---|---|\n";
    for (const FigureRecord& record : kFigures) {
      if (record.role != role) continue;
      text += "| `" + std::string(record.name) + "` | " + std::string(KindOf(record.kind)) + " | " +
              LabelsOf(record) + " | " + std::string(record.help) + " |\n";
    }
  }
  return text + "\n";
}

}  // namespace hdps
