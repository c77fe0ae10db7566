// Runs a member as a child of this process.
#include "tools/member/supervise.h"

#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "common/platform/programs/child_process.h"
#include "common/process/terminal.h"
#include "tools/member/restart_policy.h"

namespace hdps {
namespace {

constexpr int kSignalStatus = 128;  // The status of a process that a signal has ended starts here.

void Say(const std::string& text) { PrintErrorText("hdps member: " + text + "\n"); }

std::string HowItEnded(const std::string& name, int status) {
  if (status < kSignalStatus) return name + " ended with status " + std::to_string(status);
  const int signal = status - kSignalStatus;
  const char* const word = sigabbrev_np(signal);
  return name + " was killed by signal " + std::to_string(signal) + " (" +
         (word == nullptr ? "?" : word) + ")";
}

std::string Seconds(int64_t ms) {
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100);
}

// Invariant: each request to stop is passed on to the child once it handles it. A second one, half
// a second after the first or later, ends the child at once, and nothing is started after it.
class Supervision {
 public:
  Supervision(const SupervisedMember& member, FileSystem& files, MonotonicClock& clock)
      : member_(member), files_(files), clock_(clock), policy_(member.role) {}

  Result<ProcessEnd> Run() {
    std::vector<std::string> words = member_.words;
    words.push_back("--die_with_parent=" + std::to_string(::getpid()));
    for (;;) {
      const int64_t started_ms = clock_.NowMs();
      HDPS_ASSIGN_OR_RETURN(const ChildProcess child, ChildProcess::Start(words, signals_));
      const int status = WaitForEnd(child);
      const NextStart next = policy_.AfterEnd(status, told_, started_ms, clock_.NowMs());
      const std::string how = HowItEnded(member_.name, status);
      if (next.gave_up) {
        return ProcessEnd{next.exit_status, how + ", the last of " +
                                                std::to_string(RestartPolicy::kDeathsMax) +
                                                " deaths in a minute: gave up"};
      }
      if (next.unwanted) Say(how + "; the job goes on without it");
      if (!next.wait_ms || stops_ > 1) {
        return ProcessEnd{next.wait_ms ? kExitFailed : next.exit_status, how};
      }
      Say(how + "; starting it again in " + Seconds(*next.wait_ms) + " s");
      Pause(*next.wait_ms);
      if (stops_ > 1) return ProcessEnd{kExitFailed, how};
      if (JobIsOver()) {
        return ProcessEnd{kExitFailed, how + ", and the job is over: its scheduler has removed " +
                                           member_.address_file};
      }
      if (!std::exchange(again_, true)) {
        words.insert(words.end(), member_.again.begin(), member_.again.end());
      }
    }
  }

 private:
  static constexpr int64_t kOneWishMs = 500, kLookMs = 100, kLookForFileMs = 1000;

  int WaitForEnd(ChildProcess child) {
    for (;;) {
      if (const std::optional<int> status = child.Ended()) return *status;
      TakeSignal(kLookMs);
      if (pending_ && child.Handles(files_, *pending_)) {
        child.Send(*std::exchange(pending_, std::nullopt));
        told_ = true;
      }
      LookForFile();
    }
  }

  void Pause(int64_t ms) {
    const int64_t until = clock_.NowMs() + ms;
    for (int64_t now = clock_.NowMs(); now < until && stops_ < 2; now = clock_.NowMs()) {
      TakeSignal(until - now);
    }
  }

  void TakeSignal(int64_t wait_ms) {
    const std::optional<int> signal = signals_.Wait(wait_ms);
    if (!signal) return;
    const int64_t now = clock_.NowMs();
    if (stops_ > 0 && now - stopped_ms_ < kOneWishMs) return;  // One wish, told to the group too.
    stopped_ms_ = now;
    pending_ = signal;
    ++stops_;
  }

  void LookForFile() {
    const int64_t now = clock_.NowMs();
    if (file_seen_ || member_.address_file.empty() || now < next_look_ms_) return;
    next_look_ms_ = now + kLookForFileMs;
    file_seen_ = files_.Exists(member_.address_file);
  }
  // The file is opened, because a network's file system may remember names that are gone.
  bool JobIsOver() {
    return file_seen_ &&
           files_.OpenSequential(member_.address_file).status().code() == Code::kNotFound;
  }

  const SupervisedMember& member_;
  FileSystem& files_;
  MonotonicClock& clock_;
  SignalWait signals_;
  RestartPolicy policy_;
  std::optional<int> pending_;  // A stop signal that the child has not got yet.
  int stops_ = 0;
  int64_t stopped_ms_ = 0, next_look_ms_ = 0;
  bool told_ = false, again_ = false, file_seen_ = false;
};

}  // namespace

Result<ProcessEnd> SuperviseMember(const SupervisedMember& member, FileSystem& files,
                                   MonotonicClock& clock) {
  return Supervision(member, files, clock).Run();
}

}  // namespace hdps
