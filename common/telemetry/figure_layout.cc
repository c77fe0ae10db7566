// Lays the figures of a role out in the order of the list.
#include "common/telemetry/figure_layout.h"

namespace hdps {

FigureLayout::FigureLayout(FigureRole role, size_t num_names)
    : role_(role), num_names_(num_names), offsets_(kFigures.size(), kNone) {
  for (uint16_t i = 0; i < kFigures.size(); ++i) {
    const FigureRecord& record = kFigures[i];
    if (record.role != role && record.role != FigureRole::kProcess) continue;
    offsets_[i] = size_;
    size_ += LabelsOf({i}) * WidthOf(record);
  }
}

size_t FigureLayout::LabelsOf(FigureId id) const {
  switch (RecordOf(id).labels) {
    case FigureLabels::kNone:
      return 1;
    case FigureLabels::kStage:
      return kStageLabels.size();
    case FigureLabels::kDirection:
      return kDirectionLabels.size();
    case FigureLabels::kTable:
    case FigureLabels::kFeature:
      return num_names_;
    case FigureLabels::kTableTier:
      return num_names_ * kTierLabels.size();
    case FigureLabels::kProtocol:
      return kProtocolLabels.size();
    case FigureLabels::kCode:
      return kCodeLabels.size();
    case FigureLabels::kRefresh:
      return kRefreshLabels.size();
    case FigureLabels::kRefusal:
      return kRefusalLabels.size();
    case FigureLabels::kMember:
    case FigureLabels::kEvaluation:
    case FigureLabels::kShard:
      return 0;
  }
  return 0;
}

size_t FigureLayout::WidthOf(const FigureRecord& record) {
  return record.kind == FigureKind::kHistogram ? BoundsOf(record).size() + 2 : 1;
}

}  // namespace hdps
