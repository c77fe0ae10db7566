// Declares the structs of DLPack, by which libraries of Python exchange arrays.
//
// The order and meaning of the members are those of DLPack's specification
// (dmlc.github.io/dlpack/latest/c_api.html): a capsule "dltensor" has a DLManagedTensor, a capsule
// "dltensor_versioned" a DLManagedTensorVersioned. Whoever takes the struct out of a capsule
// renames that, and calls `deleter` once.
#pragma once

#include <cstdint>

namespace hdps::python::dlpack {

inline constexpr uint32_t kMajorVersion = 1, kMinorVersion = 0;
// DLDeviceType. Pinned memory of the two others is memory of the host.
inline constexpr int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11;
// DLDataTypeCode
inline constexpr uint8_t kInt = 0, kUint = 1, kFloat = 2;
inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;  // Flags.

struct Device {
  int32_t type;
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // In elements.
  uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct Version {
  uint32_t major, minor;
};

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace hdps::python::dlpack
