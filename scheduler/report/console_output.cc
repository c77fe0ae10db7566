// Prints lines to stderr: plain ones, and one that is overwritten.
#include "scheduler/report/console_output.h"

#include <glog/logging.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "common/base/thread_annotations.h"

namespace hdps {
namespace {

// Moves to the first column and erases the line.
constexpr const char* kEraseLine = "\r\033[K";

// Cuts the line to one row of the terminal, as only that can be overwritten.
std::string InOneRow(const std::string& line) {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return line;
  size_t bytes = std::min<size_t>(line.size(), size.ws_col - 1u);
  const auto within_character = [&] {
    return (static_cast<unsigned char>(line[bytes]) & 0xc0) == 0x80;
  };
  while (bytes < line.size() && bytes > 0 && within_character()) --bytes;
  return line.substr(0, bytes);
}

}  // namespace

ProgressListener SpeakOnStderr() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  // Lines may come from several threads.
  struct Terminal {
    Mutex mutex;
    std::string live HDPS_GUARDED_BY(mutex);  // Text of the live line.
  };
  auto shown = std::make_shared<Terminal>();
  ProgressListener voice;
  const auto say = [=](const std::string& line) {
    const std::string text = EscapeLines(line.ends_with('\n') ? line : line + "\n");
    MutexLock lock(shown->mutex);
    std::fprintf(stderr, "%s%s%s", terminal ? kEraseLine : "", text.c_str(), shown->live.c_str());
    std::fflush(stderr);
  };
  voice.notice = [=](const std::string& line) { say(line); };
  voice.warning = [=](const std::string& line) { say("warning: " + line); };
  if (!terminal) return voice;
  voice.progress = [=](const std::string& line) {
    MutexLock lock(shown->mutex);
    shown->live = InOneRow(EscapeLines(line));
    std::fprintf(stderr, "%s%s", kEraseLine, shown->live.c_str());
    std::fflush(stderr);
  };
  return voice;
}

ProgressListener AlsoLogged(ProgressListener listener) {
  ProgressListener both = listener;
  both.notice = [notice = std::move(listener.notice)](const std::string& line) {
    LOG(INFO) << line;
    if (notice) notice(line);
  };
  both.warning = [warning = std::move(listener.warning)](const std::string& line) {
    LOG(WARNING) << line;
    if (warning) warning(line);
  };
  return both;
}

}  // namespace hdps
