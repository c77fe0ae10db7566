// Formats numbers, with digits in groups of three.
#include "common/base/show_number.h"

#include <cstdio>

namespace hdps {

std::string ShowNumber(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string ShowWhole(double value) {
  std::string digits = ShowNumber("%.0f", value);
  const size_t sign = digits.starts_with('-') ? 1 : 0;
  for (size_t at = digits.size(); at > 3 + sign; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace hdps
