// Makes text from outside the process safe for logs and terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hdps {

// Upper bound on what is shown of one text, in bytes.
inline constexpr size_t kOutsideBytesMax = 2000;

// Returns `text` with each control character and each byte that is not UTF-8 written as \xNN, so
// that it neither controls a terminal nor begins a line. A result longer than `bytes_max` is cut
// and ends in a note of the full length; the note counts toward `bytes_max` if that is at least 31.
// Applying the function again changes nothing.
std::string EscapeUntrusted(std::string_view text, size_t bytes_max = kOutsideBytesMax);

// Does the same for a text of many lines, without cutting; newlines and tabs stay.
std::string EscapeLines(std::string_view text);

// Returns `json` with each control character written as \uNNNN, which leaves its meaning unchanged.
// A byte that is not UTF-8 is not legal JSON and becomes \ufffd. `json` must come from a JSON
// printer.
std::string EscapeJson(std::string_view json);

// Limits the rate of log lines that outsiders can cause. kAtOnce lines may be written at once and
// then one every kEveryMs; the others are only counted.
//
// Invariant: each line that Take() kept back is counted in exactly one LeftOut(), or will be in the
// next.
class LineRateLimit {
 public:
  static constexpr uint32_t kAtOnce = 20;
  static constexpr int64_t kEveryMs = 1000;

  // Returns the line if it may be written at `now_ms`.
  std::optional<std::string> Take(std::string line, int64_t now_ms);
  // Returns "37 more lines of this kind were left out" if there are any and it is time to report
  // them.
  std::optional<std::string> LeftOut(int64_t now_ms);

 private:
  static constexpr int64_t kTellEveryMs = 10000;

  void Refill(int64_t now_ms);

  uint32_t free_ = kAtOnce;
  int64_t refilled_ms_ = 0, told_ms_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace hdps
