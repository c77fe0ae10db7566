// Implements hdps scale: asks a running job to continue with other numbers of servers or workers.
#include <gflags/gflags.h>

#include <charconv>
#include <string>

#include "common/process/terminal.h"
#include "common/protocol/status_messages.h"
#include "tools/commands.h"
#include "tools/scheduler_flags.h"

// hdps train has these flags too, as plain counts.
DEFINE_string(scale_servers, "",
              "Number of servers from now on: N, or +N or -N for so many more or fewer");
DEFINE_string(scale_workers, "",
              "Number of workers from now on: N, or +N or -N for so many more or fewer");

namespace hdps {
namespace {

struct Count {
  int32_t value = 0;
  bool relative = true;
};

Result<Count> ReadCount(const char* flag, const std::string& text) {
  Count count;
  if (text.empty()) return count;
  const bool plus = text.front() == '+';
  count.relative = plus || text.front() == '-';
  const char* const begin = text.data() + (plus ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, count.value);
  if (error == std::errc() && stop == end && begin != end) return count;
  return Status(Code::kInvalidArgument, std::string("--") + flag + "=" + text +
                                            ": expected a count, N, or a change, +N or -N");
}

Status Run() {
  HDPS_ASSIGN_OR_RETURN(const Count servers, ReadCount("scale_servers", FLAGS_scale_servers));
  HDPS_ASSIGN_OR_RETURN(const Count workers, ReadCount("scale_workers", FLAGS_scale_workers));
  if (FLAGS_scale_servers.empty() && FLAGS_scale_workers.empty()) {
    return {Code::kInvalidArgument,
            "nothing to change; give --scale_servers or --scale_workers, as N, +N or -N"};
  }
  const ScaleRequest request{servers.value, servers.relative, workers.value, workers.relative};
  HDPS_ASSIGN_OR_RETURN(const ScaleReply reply,
                        AskScheduler<ScaleReply>({KeyRole::kAdmin}, request));
  if (reply.code != Code::kOk) return {reply.code, reply.message};
  PrintOut("%s\n", reply.message.c_str());
  return {};
}

}  // namespace

Subcommand ScaleCommand() {
  return {"scale",
          "change the number of servers or workers of a running job",
          "hdps scale --scheduler=ADDRESS [--keys=DIR] [--scale_servers=+1]\n"
          "                  [--scale_workers=-1]",
          {"scheduler", "elect_file", "keys", "insecure", "scale_servers", "scale_workers"},
          Run};
}

}  // namespace hdps
