// Implements hdps status: asks a running scheduler for the state of its job.
#include <gflags/gflags.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "common/process/terminal.h"
#include "common/protocol/status_messages.h"
#include "scheduler/report/console_output.h"
#include "scheduler/why/hot_shards.h"
#include "tools/commands.h"
#include "tools/scheduler_flags.h"
#include "tools/status_text.h"

DECLARE_bool(json);
DEFINE_bool(follow, false, "Write the line of progress whenever it changes, until the job ends");

namespace hdps {
namespace {

void Print(const StatusReply& status) {
  PrintOut("job '%s': %s\n", status.job.c_str(), status.state.c_str());
  if (status.members.empty()) return;
  PrintOut("view %llu, every worker has finished step %lld\n",
           static_cast<unsigned long long>(status.view.value),
           static_cast<long long>(status.clock));
  for (const MemberStatus& member : status.members) {
    PrintOut("  %-40s step %-10lld heard %.1f s ago\n", member.name.c_str(),
             static_cast<long long>(member.clock), static_cast<double>(member.silent_ms) / 1000);
  }
  const std::string hot = HotShardsText(status);
  if (!hot.empty()) PrintOutText(hot + "\n");
}

// Returns the line of progress; while there is none or the job stands, what it waits for. A member
// that works at its stage or reads data is no standstill: a moment between two steps looks so too.
std::string LineOf(const PanelReply& reply, uint64_t* version) {
  const std::span<const char> text = reply.text.As<char>();
  const auto page = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!page.is_object()) return "";
  *version = page.value("version", uint64_t{0});
  const std::string line = page["training"].value("line", "");
  const std::string kind = page["health"].value("kind", "");
  const bool moves =
      kind == "nothing" || kind == "work" || kind == "data" || kind == "disk" || kind == "between";
  return moves && !line.empty() ? line : page["health"].value("sentence", "");
}

// Writes each line once: on a terminal over the one before.
Status Follow(SchedulerConnection& connection) {
  constexpr int64_t kEveryMs = 1000;
  ProgressListener voice = SpeakOnStderr();
  const bool terminal = isatty(STDOUT_FILENO) != 0 && voice.progress;
  std::string shown;
  uint64_t version = 0;
  bool answered = false;
  while (true) {
    const Result<PanelReply> reply =
        connection.Ask<PanelReply>(PanelRequest{.panel = "page", .since = version}, kAskPatienceMs);
    if (!reply.ok() && (!answered || reply.status().code() != Code::kUnavailable)) {
      return reply.status();
    }
    if (!reply.ok()) break;
    if (reply->code != Code::kOk) return {reply->code, reply->message};
    answered = true;
    const std::string line = LineOf(*reply, &version);
    if (line != shown && !line.empty()) {
      shown = line;
      if (terminal) {
        voice.progress(line);
      } else if (!PrintOutText(EscapeUntrusted(line) + "\n")) {
        return {};  // Whoever read has ended.
      }
    }
    connection.Pause(kEveryMs);
  }
  if (terminal) voice.progress("");
  PrintOutText((terminal ? EscapeUntrusted(shown) + "\n" : "") +
               "the scheduler answers no more: the job has ended, or its scheduler has\n");
  return {};
}

Status Run() {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerConnection> connection,
                        OpenScheduler({KeyRole::kReader, KeyRole::kAdmin}));
  if (FLAGS_follow && FLAGS_json) {
    return {Code::kInvalidArgument, "--follow writes lines, and --json one document; give one"};
  }
  if (FLAGS_follow) return Follow(*connection);
  if (FLAGS_json) {
    HDPS_ASSIGN_OR_RETURN(const std::string text, AskStatusJson(*connection));
    PrintOutText(text);
    return {};
  }
  HDPS_ASSIGN_OR_RETURN(const StatusReply status,
                        connection->Ask<StatusReply>(StatusRequest(), kAskPatienceMs));
  Print(status);
  return {};
}

}  // namespace

Subcommand StatusCommand() {
  return {"status",
          "show the state of a running job",
          "hdps status --scheduler=ADDRESS [--keys=DIR] [--json | --follow]\n"
          "--json has a schema number and all panels of the job's page (docs/formats.md).\n"
          "--follow writes the line of progress, or what the job waits for, whenever it\n"
          "changes, until the scheduler answers no more.",
          {"scheduler", "elect_file", "keys", "insecure", "json", "follow"},
          Run};
}

}  // namespace hdps
