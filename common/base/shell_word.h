// Quotes text for a shell, so that printed commands can be pasted.
#pragma once

#include <string>

namespace hdps {

// Returns the text unchanged if no character is special to a shell, else in single quotes.
inline std::string ShellWord(const std::string& text) {
  constexpr const char* kUnquoted =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kUnquoted) == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace hdps
