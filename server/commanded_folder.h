// Which folders a command may name: whoever commands a server must not reach all files of its user.
#pragma once

#include <filesystem>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Ok for ".../checkpoint/NAME" without a step back in it: the folder of one checkpoint below the
// folder of a run. Where a run's folder is, the scheduler alone knows.
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
