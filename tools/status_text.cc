// Formats a status.
#include "tools/status_text.h"

#include <nlohmann/json.hpp>

#include "common/base/outside_text.h"
#include "common/protocol/status_messages.h"

namespace hdps {

std::string StatusJson(const StatusReply& status) {
  nlohmann::ordered_json members = nlohmann::ordered_json::array();
  for (const MemberStatus& member : status.members) {
    members.push_back(
        {{"name", member.name}, {"step", member.clock}, {"silent_ms", member.silent_ms}});
  }
  const nlohmann::ordered_json json = {{"job", status.job},
                                       {"state", status.state},
                                       {"view", status.view.value},
                                       {"step", status.clock},
                                       {"members", members}};
  // Names come from members; bytes that are not text are replaced instead of failing.
  return EscapeJson(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

}  // namespace hdps
