// Wraps fast_float in one function.
#include "worker/data/number.h"

#include <fast_float/fast_float.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace hdps {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<double> ParseNumber(std::string_view text) {
  text = TrimBlanks(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = fast_float::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  // "-0" becomes 0, so that rows do not differ by the sign.
  return negative && value != 0 ? -value : value;
}

std::optional<uint64_t> ParseId(std::string_view text) {
  uint64_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error == std::errc::invalid_argument || stop != end) return std::nullopt;
  return error == std::errc() ? id : std::numeric_limits<uint64_t>::max();
}

}  // namespace hdps
