// Reads from any position of a file that was written before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Reads exactly these bytes. Errors: kIoError if the file at `path` has fewer.
Status ReadBytes(SequentialFile& file, const std::string& path, uint64_t offset,
                 std::span<std::byte> bytes);

}  // namespace hdps
