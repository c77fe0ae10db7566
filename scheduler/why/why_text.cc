// Formats an explanation as a table, and as JSON.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/protocol/status_messages.h"
#include "scheduler/why/explanation.h"
#include "scheduler/why/hot_shards.h"

namespace hdps {
namespace {

using Row = std::vector<std::string>;

std::string Joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// Aligns rows: every column but the last is as wide as its widest cell.
std::string Aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = "  ";
    for (size_t c = 0; c < row.size(); ++c) {
      line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

std::string ToText(const StatusReply& status, const Explanation& explanation) {
  std::string text = explanation.sentence + "\n";
  for (const std::string& note : explanation.notes) text += "note: " + note + "\n";
  if (!explanation.advice.empty()) text += "next: " + explanation.advice + "\n";
  if (explanation.lines.empty()) return text;
  text += "\njob '" + status.job + "', view " + std::to_string(status.view.value) + ", " +
          status.state + ", every worker has finished step " + std::to_string(status.clock) + "\n";
  std::vector<Row> rows = {{"member", "step", "state", "for", "waits for", "told", "heard"}};
  for (const Explanation::Line& line : explanation.lines) {
    rows.push_back({line.member, std::to_string(line.step), line.state, Duration(line.for_ms),
                    line.waits_for.empty() ? "-" : Joined(line.waits_for),
                    line.pending_command.empty()
                        ? "-"
                        : line.pending_command + " " + Duration(line.pending_ms) + " ago",
                    Duration(line.heard_ms) + " ago"});
  }
  const std::string hot = HotShardsText(status);
  return text + Aligned(rows) + (hot.empty() ? "" : hot + "\n");
}

std::string ToJson(const StatusReply& status, const Explanation& explanation) {
  nlohmann::ordered_json members = nlohmann::ordered_json::array();
  for (const Explanation::Line& line : explanation.lines) {
    members.push_back({{"name", line.member},
                       {"step", line.step},
                       {"state", line.state},
                       {"for_ms", line.for_ms},
                       {"waits_for", line.waits_for},
                       {"told", line.pending_command},
                       {"told_ms", line.pending_ms},
                       {"silent_ms", line.heard_ms}});
  }
  nlohmann::ordered_json hot_shards = nlohmann::ordered_json::array();
  for (const HotShard& shard : status.hot_shards) {
    hot_shards.push_back({{"shard", shard.shard.value},
                          {"server", shard.server.value},
                          {"busy", shard.busy},
                          {"rows_per_second", shard.rows_per_second},
                          {"bytes", shard.bytes}});
  }
  const nlohmann::ordered_json json = {{"job", status.job},
                                       {"waits", explanation.waits()},
                                       {"kind", WhyKindName(explanation.kind)},
                                       {"explanation", explanation.sentence},
                                       {"causes", explanation.causes},
                                       {"advice", explanation.advice},
                                       {"notes", explanation.notes},
                                       {"state", status.state},
                                       {"view", status.view.value},
                                       {"step", status.clock},
                                       {"steps_made", explanation.steps},
                                       {"members", members},
                                       {"busiest_over_mean", status.busiest_over_mean},
                                       {"hot_shards", hot_shards}};
  // Names come from members: bytes that are no text are replaced, not fatal.
  return EscapeJson(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

}  // namespace hdps
