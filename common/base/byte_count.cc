// Numbers of bytes as people write and read them.
#include "common/base/byte_count.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace hdps {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},         {"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
                           {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},     {"MB", 1e6},
                           {"GB", 1e9},     {"TB", 1e12}};

}  // namespace

std::optional<uint64_t> ParseByteCount(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || stop == text.data() || std::signbit(number)) return std::nullopt;
  std::string_view name(stop, static_cast<size_t>(end - stop));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    const double bytes = number * unit.bytes;
    constexpr double kBytesMax = 0x1p63;
    if (!(bytes < kBytesMax)) return std::nullopt;
    return static_cast<uint64_t>(bytes);
  }
  return std::nullopt;
}

std::string ShowByteCount(uint64_t bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto number = static_cast<double>(bytes);
  size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(kNames); ++unit) number /= 1024;
  char text[32];
  const int digits = unit == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof(text), "%.*f %s", digits, number, kNames[unit]);
  return text;
}

}  // namespace hdps
