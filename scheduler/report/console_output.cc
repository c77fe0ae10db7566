// Lines to stderr: plain ones, and one that is written over.
#include "scheduler/report/console_output.h"

#include <glog/logging.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

namespace hdps {
namespace {

// Back to the first column, and nothing to the right of it.
constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

ProgressListener SpeakOnStderr(bool also_log) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  auto live = std::make_shared<std::string>();  // What stands on the live line.
  ProgressListener voice;
  const auto say = [=](const std::string& line) {
    const std::string text = line.ends_with('\n') ? line : line + "\n";
    std::fprintf(stderr, "%s%s%s", terminal ? kEraseLine : "", text.c_str(), live->c_str());
    std::fflush(stderr);
  };
  voice.notice = [=](const std::string& line) {
    if (also_log) LOG(INFO) << line;
    say(line);
  };
  voice.warning = [=](const std::string& line) {
    if (also_log) LOG(WARNING) << line;
    say("warning: " + line);
  };
  if (!terminal) return voice;
  voice.progress = [=](const std::string& line) {
    *live = line;
    std::fprintf(stderr, "%s%s", kEraseLine, line.c_str());
    std::fflush(stderr);
  };
  return voice;
}

}  // namespace hdps
