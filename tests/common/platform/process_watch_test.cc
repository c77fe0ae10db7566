// Tests the watch on children that run, stop, end, and leave a process id to others.
#include "common/platform/process_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

namespace hdps {
namespace {

// A child process that reports its name and waits for a signal.
class Child {
 public:
  Child() {
    int told[2];
    EXPECT_EQ(pipe(told), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const std::string name = OwnProcessName();
      if (write(told[1], name.data(), name.size()) < 0) _exit(1);
      close(told[1]);
      while (true) pause();
    }
    close(told[1]);
    char text[256];
    for (ssize_t n = 0; (n = read(told[0], text, sizeof(text))) > 0;) {
      name_.append(text, static_cast<size_t>(n));
    }
    close(told[0]);
  }
  ~Child() {
    if (pid_ > 0) End();
  }
  // Kills the child and waits until it is a zombie.
  void Kill() const {
    kill(pid_, SIGKILL);
    siginfo_t info;
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }
  void End() {
    Kill();
    EXPECT_EQ(waitpid(std::exchange(pid_, -1), nullptr, 0) > 0, true);
  }
  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::string name_;
};

TEST(ProcessName, TellsProcessesApartAndStaysTheSame) {
  const std::string own = OwnProcessName();
  EXPECT_THAT(own,
              testing::MatchesRegex("[0-9a-f-]+:[0-9]+:" + std::to_string(getpid()) + ":[0-9]+"));
  EXPECT_EQ(OwnProcessName(), own);
  Child child;
  EXPECT_NE(child.name(), own);
  EXPECT_THAT(child.name(), testing::StartsWith(MachineIdentity() + ":"));
}

TEST(ProcessWatch, KnowsAtOnceThatAProcessHasEnded) {
  Child child;
  ProcessWatch watch(child.name());
  EXPECT_EQ(watch.Look(), ProcessState::kRuns);
  child.Kill();
  EXPECT_EQ(watch.Look(), ProcessState::kEnded) << "a zombie, whose parent is in no hurry";
  EXPECT_EQ(ProcessWatch(child.name()).Look(), ProcessState::kEnded);
  child.End();
  EXPECT_EQ(watch.Look(), ProcessState::kEnded);
  EXPECT_EQ(ProcessWatch(child.name()).Look(), ProcessState::kEnded) << "who comes too late";
}

TEST(ProcessWatch, WhoStandsStillHasNotEnded) {
  Child child;
  ProcessWatch watch(child.name());
  kill(child.pid(), SIGSTOP);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT), 0);
  EXPECT_EQ(watch.Look(), ProcessState::kRuns);
}

// A process id that was reused is not the name of the earlier process.
TEST(ProcessWatch, AnotherOfThatNumberIsNotTheOne) {
  Child child;
  const std::string before = child.name().substr(0, child.name().rfind(':')) + ":1";
  ASSERT_NE(before, child.name());
  EXPECT_EQ(ProcessWatch(before).Look(), ProcessState::kEnded);
}

TEST(ProcessWatch, OfOtherMachinesAndNoNamesNothingIsKnown) {
  const std::string own = OwnProcessName();
  const std::string machine = MachineIdentity();
  for (const std::string& name :
       {std::string(), std::string(":"), std::string("x"), "0" + own, machine, machine + ":",
        machine + ":1", machine + ":x:5", machine + ":-1:5", machine + ":0:5",
        machine.substr(0, machine.rfind(':')) + ":1" + own.substr(machine.size())}) {
    ProcessWatch watch(name);
    EXPECT_EQ(watch.Look(), ProcessState::kCannotKnow) << name;
  }
  EXPECT_EQ(ProcessWatch(own).Look(), ProcessState::kRuns);
}

TEST(ProcessWatch, MovesWithWhatItKnows) {
  Child one, other;
  ProcessWatch watch(one.name());
  one.Kill();
  EXPECT_EQ(watch.Look(), ProcessState::kEnded);
  watch = ProcessWatch(other.name());
  EXPECT_EQ(watch.Look(), ProcessState::kRuns);
  ProcessWatch moved(std::move(watch));
  other.Kill();
  EXPECT_EQ(moved.Look(), ProcessState::kEnded);
}

}  // namespace
}  // namespace hdps
