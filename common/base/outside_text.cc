// Escapes text from outside, and limits its lines.
#include "common/base/outside_text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace hdps {
namespace {

// Returns the length in bytes of the UTF-8 character that begins `text`, or 0 if there is none
// (Unicode standard, table 3-7: no overlong forms, no surrogates, nothing beyond U+10FFFF).
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first < 0xc2   ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return bytes;
}

// Is true for C0, DEL, C1 (also as UTF-8 encodes them), and the marks that change the direction of
// writing.
bool Steers(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  const auto second = static_cast<unsigned char>(character[1]);
  if (character.size() == 2) return first == 0xc2 && second < 0xa0;
  if (character.size() != 3 || first != 0xe2) return false;
  const auto third = static_cast<unsigned char>(character[2]);
  // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
  return (second == 0x80 && (third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae))) ||
         (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}

void AppendEscaped(std::string_view bytes, std::string* shown) {
  for (const char byte : bytes) {
    char text[5];
    std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(byte));
    *shown += text;
  }
}

// Returns the code point of a character of one to three bytes, as accepted by Steers().
unsigned CodePoint(std::string_view character) {
  const auto byte = [character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  if (character.size() == 2) return (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
  return (byte(0) & 0xfu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
}

// Returns a text of many lines in which escape(character, is_utf8) replaces each control character
// and each byte that is not UTF-8.
template <typename Escape>
std::string EscapedLines(std::string_view text, const Escape& escape) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text.substr(at));
    const std::string_view character = text.substr(at, std::max<size_t>(1, bytes));
    const bool plain = character == "\n" || character == "\t" || !Steers(character);
    if (bytes > 0 && plain) {
      shown += character;
    } else {
      shown += escape(character, bytes > 0);
    }
    at += character.size();
  }
  return shown;
}

}  // namespace

std::string EscapeUntrusted(std::string_view text, size_t bytes_max) {
  const std::string cut = "... (" + std::to_string(text.size()) + " bytes)";
  const size_t room = bytes_max - std::min(bytes_max, cut.size());
  std::string shown;
  size_t with_room = 0;  // Length of the prefix of `shown` that leaves room for the note.
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text.substr(at));
    const std::string_view character = text.substr(at, std::max<size_t>(1, bytes));
    if (bytes == 0 || Steers(character)) {
      AppendEscaped(character, &shown);
    } else {
      shown += character;
    }
    if (shown.size() > bytes_max) return shown.substr(0, with_room) + cut;
    if (shown.size() <= room) with_room = shown.size();
    at += character.size();
  }
  return shown;
}

std::string EscapeLines(std::string_view text) {
  return EscapedLines(text, [](std::string_view character, bool) {
    std::string escaped;
    AppendEscaped(character, &escaped);
    return escaped;
  });
}

std::string EscapeJson(std::string_view json) {
  constexpr unsigned kReplacement = 0xfffd;
  return EscapedLines(json, [](std::string_view character, bool utf8) {
    char escaped[16];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", utf8 ? CodePoint(character) : kReplacement);
    return std::string(escaped);
  });
}

std::optional<std::string> LineRateLimit::Take(std::string line, int64_t now_ms) {
  Refill(now_ms);
  if (free_ == 0) {
    ++left_out_;
    return std::nullopt;
  }
  --free_;
  return line;
}

std::optional<std::string> LineRateLimit::LeftOut(int64_t now_ms) {
  if (left_out_ == 0 || now_ms - told_ms_ < kTellEveryMs) return std::nullopt;
  told_ms_ = now_ms;
  return std::to_string(std::exchange(left_out_, 0)) + " more lines of this kind were left out";
}

void LineRateLimit::Refill(int64_t now_ms) {
  const int64_t seconds = std::max<int64_t>(0, now_ms - refilled_ms_) / kEveryMs;
  refilled_ms_ += seconds * kEveryMs;
  free_ = static_cast<uint32_t>(
      std::min<int64_t>(kAtOnce, free_ + std::min<int64_t>(seconds, kAtOnce)));
}

}  // namespace hdps
