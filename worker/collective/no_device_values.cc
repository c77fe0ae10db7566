// Stands in for copies of device memory in a build without CUDA: they fail.
#include "worker/collective/device_values.h"

namespace hdps {

int CopyToOrFromDevice(void*, const void*, size_t) { return 1; }
const char* DeviceErrorText(int) { return "this build has no CUDA"; }

}  // namespace hdps
