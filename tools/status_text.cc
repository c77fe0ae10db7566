// Joins the answers of a scheduler to one JSON document.
#include "tools/status_text.h"

#include <nlohmann/json.hpp>
#include <span>

#include "common/base/outside_text.h"
#include "common/protocol/status_messages.h"
#include "tools/scheduler_flags.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> AskPanel(SchedulerConnection& connection, const std::string& panel) {
  HDPS_ASSIGN_OR_RETURN(const PanelReply reply,
                        connection.Ask<PanelReply>(PanelRequest{.panel = panel}, kAskPatienceMs));
  if (reply.code != Code::kOk) return Status(reply.code, reply.message);
  const std::span<const char> text = reply.text.As<char>();
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) {
    return Status(Code::kCorruption,
                  "the scheduler's answer about " + panel + " is no JSON object");
  }
  for (const char* name : {"schema", "version", "unix_time"}) json.erase(name);
  return json;
}

}  // namespace

Result<std::string> AskStatusJson(SchedulerConnection& connection) {
  HDPS_ASSIGN_OR_RETURN(const StatusReply status,
                        connection.Ask<StatusReply>(StatusRequest(), kAskPatienceMs));
  HDPS_ASSIGN_OR_RETURN(Json panels, AskPanel(connection, "page"));
  HDPS_ASSIGN_OR_RETURN(panels["figures"], AskPanel(connection, "figures"));
  Json members = Json::array();
  for (const MemberStatus& member : status.members) {
    members.push_back(
        {{"name", member.name}, {"step", member.clock}, {"silent_ms", member.silent_ms}});
  }
  const Json json = {{"schema", 1},           {"job", status.job},
                     {"state", status.state}, {"view", status.view.value},
                     {"step", status.clock},  {"members", members},
                     {"panels", panels}};
  // Names come from members; bytes that are not text are replaced instead of failing.
  return EscapeJson(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace hdps
