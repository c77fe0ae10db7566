// The parsed text of a job file, and its origin.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/text/json_value.h"

namespace hdps {

struct JobSource {
  std::string origin;
  JsonValue root;
};

// Returns kInvalidArgument with "census.json:12: train.mode: PROBLEM". The line is that of the
// deepest part of the dotted `path` that was written; a value that came from an override has
// "--set" as its place.
Status Refuse(const JobSource& source, const std::string& path, const std::string& problem);

inline constexpr int kOverrideLine = -1;  // The line of a value that came from the command line.
inline bool IsOverride(const JsonValue& value) { return value.line == kOverrideLine; }

// Quotes a text for a sentence.
inline std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

// Sets "train.mode=async" in the tree; the value is parsed as JSON, or else is a text. A list's
// items are named by their index, and the index one past the end appends.
Status ApplyOverride(const std::string& override_text, JobSource* source);

}  // namespace hdps
