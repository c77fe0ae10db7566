// What the parsed rows of a stream depend on: its files and settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/cache/cached_row.h"

namespace hdps {

struct DataSpec;
struct ReaderOptions;

// The rows of a list of files, or of one side of it.
struct StreamStamp {
  std::string name;  // Of a file of its own in a folder: "train-0123456789abcdef.rows".
  std::string text;  // Equal for streams with the same rows, in the same order.
};

// Errors are those of looking at the files.
Result<StreamStamp> StampOfStream(FileSystem& files, const DataSpec& data,
                                  const std::vector<std::string>& paths,
                                  const ReaderOptions& options, CachedForm form);
// Says how the stream of `wanted` differs from that of another text: "FILE has changed since".
std::string WhatDiffers(const std::string& other_text, const std::string& wanted_text);

}  // namespace hdps
