// The exception thrown when an allocation on a device fails: memory is allocated deep within a
// step, in calls that cannot return an error.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace hdps {

// Says how many bytes were asked for and are free, and what would need fewer.
class DeviceMemoryFull : public std::bad_alloc {
 public:
  explicit DeviceMemoryFull(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const std::string text_;
};

// Returns the result of `work`, or kResourceExhausted if the device has too little memory for it.
template <typename Work>
Status WithinDeviceMemory(const Work& work) {
  try {
    return work();
  } catch (const DeviceMemoryFull& full) {
    return Status(Code::kResourceExhausted, full.what());
  }
}

}  // namespace hdps
