// Tells whether cuBLASLt is available; it is loaded when a device is used.
#pragma once

#include "common/base/status.h"

namespace hdps {

// Returns kNotFound, with the loader's message, if it cannot be loaded.
Status CublasStatus();

}  // namespace hdps
