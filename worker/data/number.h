// Numbers as text files write them.
#pragma once

#include <optional>
#include <string_view>

namespace hdps {

// `text` without the blanks (space, tab, CR) at both ends.
std::string_view TrimBlanks(std::string_view text);

// The finite number that all of `text` writes ("7", "-1.5", "+2e3"); blanks around it are allowed.
// None for anything else: nan, infinity, hexadecimal, out of range, letters behind.
std::optional<double> ParseNumber(std::string_view text);

}  // namespace hdps
