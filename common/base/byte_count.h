// Byte counts in the form that people read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hdps {

// Parses a number and a unit, as in "4GiB", "1.5 GB", "512 KiB", "100". The units are B, KiB, MiB,
// GiB, TiB, and, in steps of 1000, KB, MB, GB, TB. Returns none if `text` is not of this form or
// the count does not fit.
std::optional<uint64_t> ParseByteCount(std::string_view text);

// Formats with three figures: "1.50 GiB", "312 MiB", "17 B".
std::string ShowByteCount(uint64_t bytes);

}  // namespace hdps
