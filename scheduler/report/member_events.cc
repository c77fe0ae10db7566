// Writes what happens to members as lines of metrics.jsonl.
#include <nlohmann/json.hpp>

#include "common/base/outside_text.h"
#include "common/protocol/view.h"
#include "scheduler/report/run_report.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return EscapeJson(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace

void RunReport::Lost(TimeMs now, const std::string& member, TimeMs silent_ms,
                     const std::string& cause) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", last_state_.clock},
               {"event", "lost"},
               {"member", member},
               {"silent_seconds", static_cast<double>(silent_ms) / 1000},
               {"cause", cause}}));
}

void RunReport::Promoted(TimeMs now, uint32_t group, const std::string& from,
                         const std::string& to) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", last_state_.clock},
               {"event", "promoted"},
               {"group", group},
               {"from", from},
               {"to", to}}));
}

void RunReport::Replaced(TimeMs now, const std::string& member, TimeMs after_ms) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", last_state_.clock},
               {"event", "replaced"},
               {"member", member},
               {"after_seconds", static_cast<double>(after_ms) / 1000}}));
}

void RunReport::WentBack(TimeMs now, const ProgressState& state, TimeMs stood_ms) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", state.clock},
               {"event", "went_back"},
               {"from_step", last_state_.clock},
               {"stood_seconds", static_cast<double>(stood_ms) / 1000}}));
  last_ = now;
  last_state_ = state;
  speed_.Begin(now, state.examples);
  line_.clear();
}

void RunReport::Scaled(TimeMs now, const ProgressState& state, const View& view,
                       const Moved& moved) {
  Append(Dump({{"time", static_cast<double>(now - begin_) / 1000},
               {"step", state.clock},
               {"event", "scaled"},
               {"servers", view.servers.size()},
               {"workers", view.workers.size()},
               {"shards_moved", moved.shards},
               {"rows_moved", moved.rows},
               {"bytes_moved", moved.bytes},
               {"stood_seconds", static_cast<double>(moved.stood_ms) / 1000}}));
}

}  // namespace hdps
