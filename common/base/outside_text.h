// Text that others have written, as it may stand in a log or on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hdps {

// Nothing that is shown of one text is longer.
inline constexpr size_t kOutsideBytesMax = 2000;

// `text` with each control character and each byte that is not UTF-8 as \xNN, so that it neither
// steers a terminal nor begins a line. What would be longer than `bytes_max` is cut, and the cut is
// said within them (where they have room for that: 31 bytes). Shown again, the result does not
// change.
std::string ShowOutside(std::string_view text, size_t bytes_max = kOutsideBytesMax);

// The same of a text of many lines, uncut: line ends and tabs stay.
std::string ShowLines(std::string_view text);

// `json`, as a printer of JSON wrote it, with what steers a terminal as \uNNNN: it means the same.
// A byte that is no UTF-8, which JSON does not have, becomes \ufffd.
std::string ShowJson(std::string_view json);

// Lines that anybody can cause, as often as he likes: some at once, then one a second; the others
// are counted.
//
// Invariant: each line that Take() kept back is in exactly one LeftOut(), or still to be said.
class OutsideLines {
 public:
  static constexpr uint32_t kAtOnce = 20;
  static constexpr int64_t kEveryMs = 1000;

  // The line, if it may be written at `now_ms`.
  std::optional<std::string> Take(std::string line, int64_t now_ms);
  // "37 more lines of this kind were left out", when there are any and it is time to say so.
  std::optional<std::string> LeftOut(int64_t now_ms);

 private:
  static constexpr int64_t kTellEveryMs = 10000;

  void Refill(int64_t now_ms);

  uint32_t free_ = kAtOnce;
  int64_t refilled_ms_ = 0, told_ms_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace hdps
