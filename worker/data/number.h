// Parses numbers in text files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hdps {

// Returns `text` without the blanks (space, tab, CR) at both ends.
std::string_view TrimBlanks(std::string_view text);

// Returns the finite number that the whole `text` represents ("7", "-1.5", "+2e3"); blanks around
// it are allowed. Nothing for other text: nan, infinity, hexadecimal, out of range, trailing
// letters.
std::optional<double> ParseNumber(std::string_view text);

// Returns the whole number from 0 on that `text` represents in decimal digits alone; one beyond 64
// bits is the largest. Nothing for other text.
std::optional<uint64_t> ParseId(std::string_view text);

// Parses short whole numbers, which most cells hold and which need no rounding: up to 15 digits and
// nothing else. Returns false if ParseNumber is needed.
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
