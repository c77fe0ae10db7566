// Starts and watches children by POSIX, and reads from /proc which signals they handle.
#include "common/platform/programs/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace hdps {
namespace {

std::vector<char*> ArgumentsOf(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  // POSIX does not change them.
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

Status CannotStart(const std::string& program, int error) {
  return Status(Code::kInvalidArgument, program + " cannot be started: " + std::strerror(error));
}

}  // namespace

Result<std::string> ProgramBeside(const std::string& name) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (own.parent_path() / name).string();
  if (!error && ::access(path.c_str(), X_OK) == 0) return path;
  return Status(Code::kInvalidArgument,
                "there is no program " + path + "; install " + name + " in the folder of hdps");
}

Status BecomeProgram(const std::vector<std::string>& words) {
  ::execv(words.front().c_str(), ArgumentsOf(words).data());
  return CannotStart(words.front(), errno);
}

SignalWait::SignalWait() {
  sigemptyset(&taken_);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&taken_, signal);
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&taken_, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &taken_, &before_);
}

SignalWait::~SignalWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> SignalWait::Wait(int64_t wait_ms) {
  const timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1'000'000};
  const int signal = ::sigtimedwait(&taken_, nullptr, &wait);
  if (signal <= 0 || signal == SIGCHLD) return std::nullopt;
  return signal;
}

Result<ChildProcess> ChildProcess::Start(const std::vector<std::string>& words,
                                         const SignalWait& signals) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &signals.before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words.front().c_str(), nullptr, &attributes,
                                  ArgumentsOf(words).data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return CannotStart(words.front(), error);
  return ChildProcess(pid);
}

std::optional<int> ChildProcess::Ended() {
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool ChildProcess::Handles(FileSystem& files, int signal) const {
  constexpr uint64_t kBytesMax = 1 << 16;
  const Result<std::string> text =
      ReadWholeFile(files, "/proc/" + std::to_string(pid_) + "/status", kBytesMax);
  constexpr std::string_view kName = "SigCgt:\t";
  const size_t found = text.ok() ? text->find(kName) : std::string::npos;
  if (found == std::string::npos) return false;
  uint64_t handled = 0;
  std::from_chars(text->data() + found + kName.size(), text->data() + text->size(), handled, 16);
  return (handled >> (signal - 1) & 1) != 0;
}

void ChildProcess::Send(int signal) const { ::kill(pid_, signal); }

}  // namespace hdps
