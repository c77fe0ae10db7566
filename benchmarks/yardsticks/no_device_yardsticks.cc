// Replaces device_yardsticks.cu in a build without nvcc.
#include "benchmarks/yardsticks/device_yardsticks.h"

namespace hdps {

Result<std::unique_ptr<DeviceYardsticks>> DeviceYardsticks::Make() {
  return Status(Code::kNotFound, "this build has no CUDA (nvcc was not found or HDPS_CUDA is OFF)");
}

}  // namespace hdps
