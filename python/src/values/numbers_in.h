// Takes keys and gradients out of arrays and lists of Python.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "python/src/dlpack_abi.h"
#include "python/src/values/kept_cells.h"

namespace hdps::python {

// Numbers of one type and any shape, the last axis the fastest.
//
// They are read where they are if they lie so already: by the buffer protocol (NumPy, hdps.Array),
// by DLPack (PyTorch, JAX), or by __array__ (pandas). Others, and lists, are copied.
//
// Invariant: the memory stays valid while this lives. It is made and destroyed under the
// interpreter's lock, and read without it.
class NumbersIn {
 public:
  // Keys are int64 or uint64, whose 64 bits count; floats are float32.
  enum class Wanted : uint8_t { kKeys, kFloats };

  // `where` names the argument in errors: TypeError for other types and for memory of a device,
  // with what would be right.
  NumbersIn(const pybind11::handle& given, Wanted wanted, std::string where);
  NumbersIn(const NumbersIn&) = delete;
  NumbersIn& operator=(const NumbersIn&) = delete;

  const std::vector<int64_t>& shape() const { return shape_; }
  size_t size() const;  // Product of the shape.
  std::span<const Key> keys() const { return {static_cast<const Key*>(data_), size()}; }
  std::span<const float> floats() const { return {static_cast<const float*>(data_), size()}; }
  bool copied() const { return copied_; }
  size_t copied_bytes() const { return copied_ ? size() * item_bytes() : 0; }

 private:
  size_t item_bytes() const { return wanted_ == Wanted::kKeys ? sizeof(Key) : sizeof(float); }
  void Take(const pybind11::handle& given, bool of_array);
  void TakeBuffer(const pybind11::handle& given);
  void TakeDlpack(const pybind11::handle& given);
  void TakeList(const pybind11::handle& given);
  void AddItems(const pybind11::handle& given, size_t axis, std::vector<char>* items);
  void AddItem(const pybind11::handle& item, std::vector<char>* items) const;
  // Takes memory of shape_; strides are in bytes.
  void TakeStrided(const void* data, const std::vector<int64_t>& strides);
  void RequireType(bool right, const std::string& type) const;

  const Wanted wanted_;
  const std::string where_;
  std::vector<int64_t> shape_;
  const void* data_ = nullptr;
  bool copied_ = false;
  KeptCells kept_;
  struct GiveBack {
    void operator()(dlpack::Managed* tensor) const {
      if (tensor->deleter != nullptr) tensor->deleter(tensor);
    }
  };
  std::unique_ptr<dlpack::Managed, GiveBack> tensor_;
};

}  // namespace hdps::python
