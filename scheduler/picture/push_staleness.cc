// Adds up the histograms of all servers.
#include "scheduler/picture/push_staleness.h"

#include <cstdint>
#include <memory>

#include "common/job/job_spec.h"
#include "common/job/tables/figure_tables.h"
#include "common/telemetry/figure_layout.h"
#include "scheduler/members/membership.h"

namespace hdps {

std::optional<double> PushStaleness(const Job& job, const Membership& members) {
  constexpr FigureId kAges = FigureNamed("hdps_server_push_staleness_clocks");
  const FigureLayout layout(FigureRole::kServer, FigureTables(job).size());
  const size_t width = FigureLayout::WidthOf(RecordOf(kAges));
  uint64_t pushes = 0, clocks = 0;
  for (const PeerId server : members.servers()) {
    if (!members.Has(server)) continue;
    const std::shared_ptr<const Readings> readings = members.readings(server);
    if (readings == nullptr || readings->size() != layout.size()) continue;
    for (size_t table = 0; table < layout.LabelsOf(kAges); ++table) {
      const size_t first = layout.OffsetOf(kAges) + table * width;
      for (size_t bucket = 0; bucket + 1 < width; ++bucket) pushes += (*readings)[first + bucket];
      clocks += (*readings)[first + width - 1];
    }
  }
  if (pushes == 0) return std::nullopt;
  return static_cast<double>(clocks) / static_cast<double>(pushes);
}

}  // namespace hdps
