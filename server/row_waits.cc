// Finds the workers for which a server holds others back.
#include "server/row_service.h"

namespace hdps {

std::vector<PeerId> RowService::WaitsFor() const {
  std::vector<PeerId> late;
  if (gate_.size() == 0 && !norm_.asked()) return late;
  for (const auto& [peer, worker] : workers_) {
    const Clock clock = clocks_.of(worker);
    bool is_late = clock == clocks_.min();
    if (sync_) is_late = clock <= combiner_.next() && !combiner_.HoldsAll(worker, combiner_.next());
    if (norm_.holds()) is_late = clock <= norm_.clock();
    if (is_late) late.push_back(peer);
  }
  return late;
}

}  // namespace hdps
