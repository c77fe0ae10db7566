// Reads as much of a message's head as a load needs.
#include "benchmarks/serving/http_message.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace hdps {

namespace {

bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

std::optional<MessageHead> ReadMessageHead(std::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  MessageHead head;
  head.head_bytes = end + 4;
  std::string_view lines = bytes.substr(0, end + 2);
  if (lines.starts_with("HTTP/1.1 "))
    std::from_chars(lines.data() + 9, lines.data() + lines.size(), head.status);
  while (!lines.empty()) {
    const size_t line_end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, line_end);
    lines.remove_prefix(line_end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    size_t length = 0;
    if (SameWord(name, "Content-Length") &&
        std::from_chars(value.data(), value.data() + value.size(), length).ec == std::errc())
      head.body_bytes = length;
    if (SameWord(name, "Connection") && SameWord(value, "close")) head.last = true;
  }
  return head;
}

std::string_view ModelVersionOf(std::string_view body) {
  constexpr std::string_view kName = "\"model_version\"";
  const size_t at = body.find(kName);
  if (at == std::string_view::npos) return {};
  const size_t begin = body.find('"', at + kName.size());
  if (begin == std::string_view::npos) return {};
  const size_t end = body.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view()
                                       : body.substr(begin + 1, end - begin - 1);
}

}  // namespace hdps
