// Whether cuBLASLt is there: it is loaded when a device is used.
#pragma once

#include "common/base/status.h"

namespace hdps {

// kNotFound, with what the loader says, where it cannot be loaded.
Status CublasStatus();

}  // namespace hdps
