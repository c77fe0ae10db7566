// Files that appear under their names as a whole, and never in place of what was read.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The file that a failure leaves as it was: what is appended goes into BesideOf(path), and Close()
// gives it the name. Without Close(), or after a failure, the part is removed. A link is followed,
// so it stays one. What cannot be renamed is written as it is: pipes, devices, and the streams of
// /dev and /proc. For files that an operator names.
Result<std::unique_ptr<WritableFile>> CreateAtomically(FileSystem& files, const std::string& path);
// WriteFileAtomically() by it.
Status WriteNamedFile(FileSystem& files, const std::string& path, const std::string& text);
// As CreateAtomically(), but of a link, a pipe or a device under this name the name is taken. For
// files that a program names by itself.
Result<std::unique_ptr<WritableFile>> ReplaceAtomically(FileSystem& files, const std::string& path,
                                                        Survives survives = Survives::kMachine);
// The path of the file that is written until then.
std::string BesideOf(const std::string& path);

// A file that a command reads, with its name in messages: "the job file".
struct InputFile {
  std::string what;
  std::string path;
};
// kInvalidArgument, "NAME is WHAT ...", where `path` is one of the inputs, by whatever spelling or
// link, or would be written beside itself under the name of one. `name`: as "--out=FILE".
Status RefuseInput(FileSystem& files, const std::string& name, const std::string& path,
                   std::span<const InputFile> inputs);

}  // namespace hdps
