// Describes a command to other programs, from which man pages and completion are made.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hdps {

// A flag that every command has and that gflags does not hold.
struct FlagOfAll {
  const char* name;
  const char* value;  // What it takes, as ValuesOf() has it; empty: nothing.
  const char* help;
};
inline constexpr FlagOfAll kFlagsOfAll[] = {
    {"flagfile", "file", "more flags, one a line"},
    {"help", "", "this text"},
    {"version", "", "version of hdps and of its protocol"},
};

// Returns what a flag takes: "file" or "folder", words as "info|warning|error", or "" for any
// other text or number. `program` is "hdps-server" or "hdps train".
std::string_view ValuesOf(std::string_view program, std::string_view flag);

// Prints one line of JSON: program, help, usage, whether it has arguments besides flags, and each
// flag with type, default, help, and the ValuesOf() it. `usage` begins "PROGRAM: HELP\nusage: ".
void PrintDescription(std::string_view usage, std::span<const std::string_view> flags,
                      bool has_arguments);

}  // namespace hdps
