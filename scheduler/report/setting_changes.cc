// Prints changes of settings as JSON and as text.
#include "scheduler/report/setting_changes.h"

#include <nlohmann/json.hpp>

#include "common/protocol/manifest.h"

namespace hdps {

std::string PrintChanges(const std::vector<SettingChange>& changes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SettingChange& change : changes) {
    list.push_back({{"step", change.clock},
                    {"setting", change.setting},
                    {"from", change.from},
                    {"to", change.to}});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ChangeText(const SettingChange& change) {
  return "at step " + std::to_string(change.clock) + ": " + change.setting + " from " +
         change.from + " to " + change.to;
}

}  // namespace hdps
