// Implements child processes by fork, exec and wait.
#include "benchmarks/clusters/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>

namespace hdps {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> list;
  for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
  list.push_back(nullptr);
  number_ = fork();
  if (number_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execvp(list[0], list.data());
  _exit(127);
}

ChildProcess::~ChildProcess() {
  if (number_ <= 0) return;
  kill(number_, SIGKILL);
  waitpid(number_, nullptr, 0);
}

double ChildProcess::CpuSeconds() const {
  clockid_t clock = 0;
  timespec time = {};
  if (number_ <= 0 || clock_getcpuclockid(number_, &clock) != 0) return 0;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int ChildProcess::Wait() {
  int status = 0;
  if (number_ <= 0 || waitpid(number_, &status, 0) != number_) return 127;
  number_ = -1;
  constexpr int kSignalBase = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

void ChildProcess::Signal(int signal) {
  if (number_ > 0) kill(number_, signal);
}

std::string Beside(const std::string& program, const std::string& name) {
  return (std::filesystem::path(program).parent_path() / name).string();
}

}  // namespace hdps
