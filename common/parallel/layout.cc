// Layouts as digits of a rank.
#include "common/parallel/layout.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>

namespace hdps {
namespace {

const char* WordOf(AxisRole role) {
  switch (role) {
    case AxisRole::kRows:
      return "rows ";
    case AxisRole::kColumns:
      return "columns ";
    case AxisRole::kSums:
      return "sums ";
    case AxisRole::kCopies:
      break;
  }
  return "copies ";
}

}  // namespace

Layout::Layout(const std::vector<LayoutAxis>& axes) {
  for (const LayoutAxis& axis : axes) {
    CHECK_GT(axis.parts, 0u);
    if (axis.parts == 1) continue;
    if (!axes_.empty() && axes_.back().role == axis.role) {
      axes_.back().parts *= axis.parts;
    } else {
      axes_.push_back(axis);
    }
  }
  std::set<AxisRole> roles;
  for (const LayoutAxis& axis : axes_) {
    CHECK(axis.role == AxisRole::kCopies || roles.insert(axis.role).second) << Shown();
  }
}

uint32_t Layout::workers() const {
  uint32_t product = 1;
  for (const LayoutAxis& axis : axes_) product *= axis.parts;
  return product;
}

uint32_t Layout::parts(AxisRole role) const {
  uint32_t product = 1;
  for (const LayoutAxis& axis : axes_) product *= axis.role == role ? axis.parts : 1;
  return product;
}

uint32_t Layout::PartOf(uint32_t rank, AxisRole role) const {
  uint32_t below = workers(), part = 0;
  for (const LayoutAxis& axis : axes_) {
    below /= axis.parts;
    if (axis.role == role) part = part * axis.parts + rank / below % axis.parts;
  }
  return part;
}

std::vector<uint32_t> Layout::Along(uint32_t rank, AxisRole role) const {
  uint32_t below = workers();
  for (const LayoutAxis& axis : axes_) {
    below /= axis.parts;
    if (axis.role != role) continue;
    std::vector<uint32_t> ranks;
    const uint32_t first = rank - rank / below % axis.parts * below;
    for (uint32_t part = 0; part < axis.parts; ++part) ranks.push_back(first + part * below);
    return ranks;
  }
  return {rank};
}

std::string Layout::Shown() const {
  std::string shown;
  for (const LayoutAxis& axis : axes_) {
    if (!shown.empty()) shown += " x ";
    shown += WordOf(axis.role) + std::to_string(axis.parts);
  }
  return shown.empty() ? "one worker" : shown;
}

}  // namespace hdps
