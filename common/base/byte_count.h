// Numbers of bytes as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hdps {

// "4GiB", "1.5 GB", "512 KiB", "100": a number and a unit, B, KiB, MiB, GiB, TiB, or KB, MB, GB, TB
// in steps of 1000. Nothing when it is none of these or does not fit.
std::optional<uint64_t> ParseByteCount(std::string_view text);

// "1.50 GiB", "312 MiB", "17 B": three figures.
std::string ShowByteCount(uint64_t bytes);

}  // namespace hdps
