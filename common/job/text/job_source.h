// A job text before it is understood: where it came from, and its tree.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/text/json_value.h"

namespace hdps {

struct JobSource {
  std::string origin;
  JsonValue root;
};

// kInvalidArgument: "census.json:12: train.mode: PROBLEM". The line is that of the deepest part of
// the dotted `path` that was written; a value that came by an override is placed at "--set".
Status Refuse(const JobSource& source, const std::string& path, const std::string& problem);

// A text in a sentence.
inline std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

// Sets "train.mode=async" (the value as JSON, else as text) in the tree. A list's items are named
// by their number, and their count appends.
Status ApplyOverride(const std::string& override_text, JobSource* source);

}  // namespace hdps
