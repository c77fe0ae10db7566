// Numbers as text files write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hdps {

// `text` without the blanks (space, tab, CR) at both ends.
std::string_view TrimBlanks(std::string_view text);

// The finite number that all of `text` writes ("7", "-1.5", "+2e3"); blanks around it are allowed.
// None for anything else: nan, infinity, hexadecimal, out of range, letters behind.
std::optional<double> ParseNumber(std::string_view text);

// The short whole numbers that most cells hold, which need no rounding rule: up to 15 digits and
// nothing else. False where ParseNumber has to look.
inline bool ParseDigits(std::string_view text, double* number) {
  constexpr size_t kExactDigits = 15;  // Exact in a double.
  if (text.empty() || text.size() > kExactDigits) return false;
  uint64_t whole = 0;
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit > 9) return false;
    whole = whole * 10 + digit;
  }
  *number = static_cast<double>(whole);
  return true;
}

}  // namespace hdps
