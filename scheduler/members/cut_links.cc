// Counts the silent links of each server.
#include "scheduler/members/cut_links.h"

#include <algorithm>
#include <map>

namespace hdps {
namespace {

struct Silence {
  std::vector<PeerId> workers;  // Workers that do not hear the server.
  TimeMs for_ms = 0;            // The shortest silence.
};

std::map<PeerId, Silence> ByServer(const std::vector<LinkReport>& reports,
                                   const std::vector<PeerId>& servers, TimeMs dead_after_ms) {
  std::map<PeerId, Silence> by_server;
  for (const LinkReport& report : reports) {
    for (const SilentServer& silent : report.silent) {
      if (std::ranges::count(servers, silent.peer) == 0 || silent.for_ms <= dead_after_ms) continue;
      Silence& silence = by_server[silent.peer];
      const bool first = silence.workers.empty();
      silence.for_ms = first ? silent.for_ms : std::min<TimeMs>(silence.for_ms, silent.for_ms);
      silence.workers.push_back(report.worker);
    }
  }
  return by_server;
}

}  // namespace

std::vector<CutLink> FindCutLinks(const std::vector<LinkReport>& reports,
                                  const std::vector<PeerId>& servers, TimeMs dead_after_ms) {
  const std::map<PeerId, Silence> by_server = ByServer(reports, servers, dead_after_ms);
  if (by_server.empty()) return {};
  const PeerId worker = by_server.begin()->second.workers.front();
  const bool by_one = std::ranges::all_of(by_server, [&](const auto& server) {
    return server.second.workers == std::vector<PeerId>{worker};
  });
  if (by_one && servers.size() > 1 && by_server.size() == servers.size()) {
    TimeMs least = by_server.begin()->second.for_ms;
    for (const auto& [server, silence] : by_server) least = std::min(least, silence.for_ms);
    // Other workers may be about to report the same: their heartbeats come at other moments.
    if (3 * least <= 4 * dead_after_ms) return {};
    return {{worker, true, by_server.size(), least}};
  }
  std::vector<CutLink> cut;
  for (const auto& [server, silence] : by_server) {
    const size_t links = silence.workers.size();
    if (links > 1 || links == reports.size()) cut.push_back({server, false, links, silence.for_ms});
  }
  return cut;
}

}  // namespace hdps
