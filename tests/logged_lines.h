// Records what is logged while it exists.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hdps {

class LoggedLines : public google::LogSink {
 public:
  LoggedLines() { google::AddLogSink(this); }
  ~LoggedLines() override { google::RemoveLogSink(this); }
  LoggedLines(const LoggedLines&) = delete;
  LoggedLines& operator=(const LoggedLines&) = delete;

  void send(google::LogSeverity /*severity*/, const char* /*path*/, const char* /*file*/,
            int /*line*/, const google::LogMessageTime& /*time*/, const char* message,
            size_t length) override {
    text_.append(message, length) += '\n';
  }

  const std::string& text() const { return text_; }
  size_t CountOf(std::string_view words) const {
    size_t count = 0;
    for (size_t at = text_.find(words); at != std::string::npos; at = text_.find(words, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  std::string text_;
};

}  // namespace hdps
