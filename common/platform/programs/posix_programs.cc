// Starts programs by posix_spawn, which does not copy the memory of a large process.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/platform/monotonic_clock.h"
#include "common/platform/process_watch.h"
#include "common/platform/programs/program.h"

namespace hdps {
namespace {

constexpr size_t kOutputBytesMax = 64 << 20, kErrorBytesMax = 16 << 10;

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }
  void Close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> NewPipe() {
  int ends[2] = {};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status(Code::kIoError, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // The other end is the program's, which may wait.
  return pipe;
}

// Reads what is there; closes the descriptor at its end. Calls take(text) for each piece.
template <typename Take>
void Drain(Descriptor* from, const Take& take) {
  std::array<char, 1 << 16> piece;
  while (from->number() >= 0) {
    const ssize_t length = ::read(from->number(), piece.data(), piece.size());
    if (length > 0) {
      take(std::string_view(piece.data(), static_cast<size_t>(length)));
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
      from->Close();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

// Invariant: the child is reaped exactly once, by Wait() or by the destructor.
class PosixProgram : public RunningProgram {
 public:
  PosixProgram(pid_t child, Descriptor output, Descriptor errors)
      : child_(child),
        watch_(WatchProcess(static_cast<uint64_t>(child))),
        output_(std::move(output)),
        errors_(std::move(errors)) {}
  ~PosixProgram() override {
    if (child_ <= 0) return;
    ::kill(-child_, SIGKILL);  // Its whole group.
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  std::optional<ProgramEnd> Wait(int64_t wait_ms) override {
    const int64_t until = wait_ms == 0 ? 0 : clock_->NowMs() + wait_ms;
    while (true) {
      int status = 0;
      const bool ended = ::waitpid(child_, &status, WNOHANG) == child_;
      TakePrinted();  // After an end, all that it has printed is there.
      if (ended) {
        child_ = 0;
        end_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return std::move(end_);
      }
      const int64_t left = wait_ms == 0 ? 0 : until - clock_->NowMs();
      if (left <= 0) return std::nullopt;
      // Without a pidfd, on an old kernel, the end shows only in waitpid().
      constexpr int64_t kLookMs = 20;
      std::array<pollfd, 3> watched = {{{watch_.number(), POLLIN, 0},
                                        {output_.number(), POLLIN, 0},
                                        {errors_.number(), POLLIN, 0}}};
      const int64_t most = watch_.number() < 0 ? std::min(left, kLookMs) : left;
      ::poll(watched.data(), watched.size(), static_cast<int>(std::min<int64_t>(most, 1 << 20)));
    }
  }

  std::string LastLine() const override {
    const std::string& text = end_.errors;
    const size_t end = text.rfind('\n');
    if (end == std::string::npos) return "";
    const size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, end - begin);
  }

 private:
  void TakePrinted() {
    Drain(&output_, [this](std::string_view text) {
      const size_t room = kOutputBytesMax - end_.output.size();
      end_.output_cut |= text.size() > room;
      end_.output.append(text.substr(0, room));
    });
    Drain(&errors_, [this](std::string_view text) {
      end_.errors.append(text);
      if (end_.errors.size() > kErrorBytesMax) {
        end_.errors.erase(0, end_.errors.size() - kErrorBytesMax);
      }
    });
  }

  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  pid_t child_;  // 0 after its end.
  Descriptor watch_;
  Descriptor output_, errors_;
  ProgramEnd end_;
};

// Frees what posix_spawn is told, whichever way Start() ends.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

class PosixPrograms : public Programs {
 public:
  Result<std::unique_ptr<RunningProgram>> Start(const std::vector<std::string>& words) override {
    HDPS_ASSIGN_OR_RETURN(Pipe output, NewPipe());
    HDPS_ASSIGN_OR_RETURN(Pipe errors, NewPipe());
    SpawnPlan plan;
    ::posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&plan.actions, output.write.number(), 1);
    ::posix_spawn_file_actions_adddup2(&plan.actions, errors.write.number(), 2);
    ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, 3);
    // Signals that this process ignores or blocks would stay so in the program.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&plan.attributes, &none);
    ::posix_spawnattr_setsigdefault(&plan.attributes, &all);
    ::posix_spawnattr_setpgroup(&plan.attributes, 0);
    ::posix_spawnattr_setflags(
        &plan.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, arguments[0], &plan.actions, &plan.attributes,
                                     arguments.data(), environ);
    if (error != 0) {
      return Status(error == ENOENT ? Code::kNotFound : Code::kIoError,
                    "cannot start " + words[0] + ": " + std::strerror(error));
    }
    return std::unique_ptr<RunningProgram>(
        std::make_unique<PosixProgram>(child, std::move(output.read), std::move(errors.read)));
  }
};

}  // namespace

std::unique_ptr<Programs> NewPosixPrograms() { return std::make_unique<PosixPrograms>(); }

}  // namespace hdps
