// Limits the folders that a command may name: a command must not reach all files of the server's
// user.
#pragma once

#include <filesystem>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Returns ok for a path ".../checkpoint/NAME" without "..": the folder of one checkpoint below the
// folder of a run. Only the scheduler knows where the run's folder is.
inline Status CheckCommandedFolder(const std::string& path) {
  const std::filesystem::path folder(path);
  bool sound = !folder.filename().empty() && folder.filename() != "." &&
               folder.parent_path().filename() == "checkpoint" &&
               path.find('\0') == std::string::npos;
  for (const std::filesystem::path& part : folder) sound = sound && part != "..";
  if (sound) return Status();
  return Status(
      Code::kInvalidArgument,
      "path \"" + path + "\" is not where a checkpoint lies; a command names OUT/checkpoint/NAME");
}

}  // namespace hdps
