// What an allocation throws where it does not fit: it is asked for deep in a step, whose calls have
// no way to fail but this one.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace hdps {

// Says how many bytes were asked for, how many there are, and what would need fewer.
class DeviceMemoryFull : public std::bad_alloc {
 public:
  explicit DeviceMemoryFull(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const std::string text_;
};

// What `work` gives; kResourceExhausted where the device has no memory for it.
template <typename Work>
Status WithinDeviceMemory(const Work& work) {
  try {
    return work();
  } catch (const DeviceMemoryFull& full) {
    return Status(Code::kResourceExhausted, full.what());
  }
}

}  // namespace hdps
