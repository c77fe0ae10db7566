// Names and finds the files of the scheduler's state, one for each reign.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/scheduler_state.h"

namespace hdps {
namespace {

const std::string kStateName = "scheduler.state";

// Returns 12 for scheduler.state.12 and for scheduler.state.12.tmp, the file beside it; none if the
// name is no state's.
std::optional<uint64_t> ReignOf(const std::string& name) {
  if (!name.starts_with(kStateName)) return std::nullopt;
  uint64_t reign = 0;
  const char* const end = name.data() + name.size();
  const char* rest = name.data() + kStateName.size();
  if (rest != end && *rest == '.') {
    const auto [after, error] = std::from_chars(rest + 1, end, reign);
    if (error == std::errc()) rest = after;
  }
  const std::string_view left(rest, end);
  if (left.empty() || left == ".tmp") return reign;
  return std::nullopt;
}

}  // namespace

std::string SchedulerStatePath(const std::string& out, uint64_t reign) {
  return JoinPath(out, kStateName + (reign == 0 ? "" : "." + std::to_string(reign)));
}

uint64_t NewestReign(FileSystem& files, const std::string& out) {
  uint64_t newest = 0;
  const Result<std::vector<std::string>> names = files.List(out);
  if (!names.ok()) return newest;
  for (const std::string& name : *names) {
    const std::optional<uint64_t> reign = ReignOf(name);
    if (reign && !name.ends_with(".tmp")) newest = std::max(newest, *reign);
  }
  return newest;
}

Status RemoveSchedulerStates(FileSystem& files, const std::string& out, uint64_t reign, bool own) {
  if (own) HDPS_RETURN_IF_ERROR(files.RemoveAll(SchedulerStatePath(out, reign)));
  if (reign == 0) return {};
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(out));
  for (const std::string& name : names) {
    if (ReignOf(name).value_or(reign) == reign) continue;
    if (*ReignOf(name) < reign) HDPS_RETURN_IF_ERROR(files.RemoveAll(JoinPath(out, name)));
  }
  return {};
}

}  // namespace hdps
