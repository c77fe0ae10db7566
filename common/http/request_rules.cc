// Splits targets, queries and headers, reads lengths, and compares tokens.
#include "common/http/request_rules.h"

#include <algorithm>
#include <charconv>

namespace hdps {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool EqualWithoutCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = Lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]), low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return decoded;
}

// Removes the text up to the first `end` from `rest`, and returns it without that character.
std::string_view TakeUntil(char end, std::string_view* rest) {
  const size_t at = std::min(rest->find(end), rest->size());
  const std::string_view taken = rest->substr(0, at);
  rest->remove_prefix(std::min(at + 1, rest->size()));
  return taken;
}

bool IsParameter(std::string_view part, std::string_view name) {
  const std::optional<std::string> decoded = Decoded(TakeUntil('=', &part));
  return decoded == name;
}

std::string_view Trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

HttpTarget SplitTarget(std::string_view target) {
  HttpTarget split;
  split.path = TakeUntil('?', &target);
  split.query = TakeUntil('#', &target);
  return split;
}

std::optional<std::string> QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view part = TakeUntil('&', &query);
    if (!IsParameter(part, name)) continue;
    TakeUntil('=', &part);
    return Decoded(part);
  }
  return std::nullopt;
}

std::string QueryWithout(std::string_view query, std::string_view name) {
  if (!std::ranges::all_of(query, [](char c) { return c > ' ' && c < 0x7f; })) return "";
  std::string kept;
  while (!query.empty()) {
    const std::string_view part = TakeUntil('&', &query);
    if (part.empty() || IsParameter(part, name)) continue;
    kept += (kept.empty() ? "" : "&") + std::string(part);
  }
  return kept;
}

std::optional<std::string> HostOf(std::string_view header) {
  header = Trimmed(header);
  std::string host(header.substr(0, header.find(':')));
  if (host.size() < header.size()) {
    constexpr size_t kPortDigitsMax = 5;
    const std::string_view port = header.substr(host.size() + 1);
    if (port.size() > kPortDigitsMax || !std::ranges::all_of(port, IsDigit)) return std::nullopt;
  }
  host = InLowerCase(host);
  const bool plain = std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '.' || c == '-' || c == '_';
  });
  if (host.empty() || !plain) return std::nullopt;
  return host;
}

bool IsBearer(std::string_view header, std::string_view token) {
  header = Trimmed(header);
  const std::string_view scheme = TakeUntil(' ', &header);
  return EqualWithoutCase(scheme, "Bearer") && EqualInConstantTime(Trimmed(header), token);
}

bool HasCookie(std::string_view header, std::string_view name, std::string_view value) {
  bool found = false;
  while (!header.empty()) {
    std::string_view pair = Trimmed(TakeUntil(';', &header));
    if (TakeUntil('=', &pair) == name) found |= EqualInConstantTime(pair, value);
  }
  return found;
}

std::optional<BodyFrame> BodyFrameOf(std::optional<std::string_view> length,
                                     std::optional<std::string_view> coding) {
  if (coding) {
    if (length || !EqualWithoutCase(Trimmed(*coding), "chunked")) return std::nullopt;
    return BodyFrame{true, 0};
  }
  BodyFrame frame;
  if (!length) return frame;
  const std::string_view digits = Trimmed(*length);
  if (digits.empty() || !std::ranges::all_of(digits, IsDigit)) return std::nullopt;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, frame.bytes).ec != std::errc()) return std::nullopt;
  return frame;
}

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), Lower);
  return lower;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // Volatile, so that no compiler ends the loop at the first difference.
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<uint8_t>(difference | static_cast<uint8_t>(a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace hdps
