// Numbers as people read them.
#pragma once

#include <string>

namespace hdps {

// `value` by a format of printf for one double, at most 63 characters.
std::string ShowNumber(const char* format, double value);

// 1234567.4 as "1,234,567".
std::string ShowWhole(double value);

}  // namespace hdps
