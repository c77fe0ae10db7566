// Formats numbers for people.
#pragma once

#include <string>

namespace hdps {

// Formats `value` with a printf format for one double; the result has at most 63 characters.
std::string ShowNumber(const char* format, double value);

// Formats 1234567.4 as "1,234,567".
std::string ShowWhole(double value);

}  // namespace hdps
