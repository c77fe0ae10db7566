// Builds rclone's command lines and reads what it says.
#include "common/protocol/checkpoints/rclone.h"

#include <algorithm>
#include <string_view>

#include "common/base/shell_word.h"

namespace hdps {
namespace {

constexpr const char* kMissing =
    "rclone is not installed: apt install rclone (scripts/install_deps.sh --copies)";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Removes "2022/11/28 03:23:43 ", with which rclone begins a line.
std::string_view WithoutTime(std::string_view line) {
  constexpr std::string_view kForm = "0000/00/00 00:00:00 ";
  if (line.size() < kForm.size()) return line;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !IsDigit(line[i]) : line[i] != kForm[i]) return line;
  }
  return line.substr(kForm.size());
}

// Removes "NOTICE: " or "ERROR : ".
std::string_view WithoutLevel(std::string_view line) {
  for (const std::string_view level : {"NOTICE: ", "ERROR : "}) {
    if (line.starts_with(level)) line.remove_prefix(level.size());
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line;
}

}  // namespace

bool LooksRemote(const std::string& path) {
  const size_t colon = path.find(':', path.starts_with(':') ? 1 : 0);
  if (colon == std::string::npos || colon == 0) return false;
  const std::string_view name = std::string_view(path).substr(0, colon);
  // Rclone's own rule for names, beside which ":BACKEND,key=value" may hold anything but slashes.
  return name != ":" && !name.starts_with('-') && name.find('/') == name.npos;
}

bool IsRemote(FileSystem& files, const std::string& path) {
  return LooksRemote(path) && !files.Exists(path);
}

std::string JoinRemote(const std::string& remote, const std::string& name) {
  const bool joined = remote.ends_with(':') || remote.ends_with('/');
  return remote + (joined ? "" : "/") + name;
}

std::vector<std::string> RcloneCommand(RclonePriority priority, std::vector<std::string> words) {
  std::vector<std::string> command = {"setpriv", "--pdeathsig", "KILL", "nice", "-n"};
  command.push_back(priority == RclonePriority::kBehind ? "19" : "0");
  command.push_back("rclone");
  command.insert(command.end(), words.begin(), words.end());
  for (const char* flag : {"--stats=1s", "--stats-one-line", "--stats-log-level=NOTICE"}) {
    command.insert(command.begin() + 7, flag);
  }
  return command;
}

std::string RcloneText(const std::vector<std::string>& words) {
  std::string text = "rclone";
  for (const std::string& word : words) text += " " + ShellWord(word);
  return text;
}

std::string RcloneProgress(const std::string& line) {
  const std::string_view told = WithoutTime(line);
  if (told == line || !told.starts_with("NOTICE: ") || told.find(", ETA ") == told.npos) return "";
  return std::string(WithoutLevel(told));
}

std::string RcloneFault(const ProgramEnd& end) {
  if (end.status == kNoRclone) return kMissing;
  std::string fault;
  for (size_t at = 0; at < end.errors.size();) {
    const size_t to = std::min(end.errors.find('\n', at), end.errors.size());
    const std::string line = end.errors.substr(at, to - at);
    at = to + 1;
    const std::string_view told = WithoutLevel(WithoutTime(line));
    // The last line says what it has ended for.
    if (!told.empty() && RcloneProgress(line).empty()) fault = told;
  }
  if (!fault.empty()) return fault;
  return "rclone ended with status " + std::to_string(end.status) + " and said nothing";
}

Result<ProgramEnd> RunRclone(Programs& programs, std::vector<std::string> words, int64_t limit_ms,
                             const std::function<void(const std::string&)>& progress) {
  Result<std::unique_ptr<RunningProgram>> started =
      programs.Start(RcloneCommand(RclonePriority::kUsual, words));
  if (!started.ok()) return Status(Code::kInvalidArgument, started.status().message());
  constexpr int64_t kLookMs = 1000;
  for (int64_t waited = 0; waited < limit_ms; waited += kLookMs) {
    std::optional<ProgramEnd> end = (*started)->Wait(kLookMs);
    if (end) return *std::move(end);
    const std::string told = RcloneProgress((*started)->LastLine());
    if (progress && !told.empty()) progress(told);
  }
  return Status(Code::kTimeout,
                RcloneText(words) + " has not ended in " + std::to_string(limit_ms / 1000) + " s");
}

}  // namespace hdps
