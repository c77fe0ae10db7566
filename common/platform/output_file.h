// Output files that appear under their names only when complete, and never overwrite an input.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Opens an output file that an operator names. Appended bytes go into BesideOf(path), and Close()
// renames it, so a failure leaves the old file unchanged. Without Close(), or after a failure, the
// partial file is removed. A link is followed and stays a link. Pipes, devices, and the streams of
// /dev and /proc cannot be renamed and are written directly.
Result<std::unique_ptr<WritableFile>> CreateAtomically(FileSystem& files, const std::string& path);
// Writes a whole file in this way.
Status WriteNamedFile(FileSystem& files, const std::string& path, const std::string& text);
// Opens an output file that a program names by itself: like CreateAtomically(), but a link, a pipe
// or a device at `path` is replaced.
Result<std::unique_ptr<WritableFile>> ReplaceAtomically(FileSystem& files, const std::string& path,
                                                        Survives survives = Survives::kMachine);
// Returns the path of the partial file.
std::string BesideOf(const std::string& path);

// A file that a command reads, with its description for messages: "the job file".
struct InputFile {
  std::string what;
  std::string path;
};
// Checks that an output is not an input. Errors: kInvalidArgument, "NAME is WHAT ...", if `path`,
// or the partial file beside it, is one of the inputs, whatever the spelling or link. `name` is how
// the output was given, as "--out=FILE".
Status RefuseInput(FileSystem& files, const std::string& name, const std::string& path,
                   std::span<const InputFile> inputs);

}  // namespace hdps
