// Hands arrays of the library to Python without a copy.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hdps::python {

enum class ArrayType : uint8_t { kFloat32, kFloat64, kInt64, kUint64 };
template <typename T>
constexpr ArrayType ArrayTypeOf();
template <>
constexpr ArrayType ArrayTypeOf<float>() {
  return ArrayType::kFloat32;
}
template <>
constexpr ArrayType ArrayTypeOf<double>() {
  return ArrayType::kFloat64;
}
template <>
constexpr ArrayType ArrayTypeOf<int64_t>() {
  return ArrayType::kInt64;
}
template <>
constexpr ArrayType ArrayTypeOf<uint64_t>() {
  return ArrayType::kUint64;
}

// hdps.Array: numbers in memory of the library, that Python reads by the buffer protocol or DLPack.
//
// Invariant: the values lie one behind the other, the last axis the fastest, and never change. Each
// view of them keeps them.
class Array {
 public:
  // Requires: the product of `shape` is values.size().
  template <typename T>
  static Array Of(std::vector<T> values, std::vector<int64_t> shape) {
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    return Array(kept, kept->data(), ArrayTypeOf<T>(), std::move(shape));
  }
  // Returns an array over values that `keeps` keeps, without a copy of them.
  template <typename T>
  static Array Over(std::shared_ptr<const void> keeps, std::span<const T> values,
                    std::vector<int64_t> shape) {
    return Array(std::move(keeps), values.data(), ArrayTypeOf<T>(), std::move(shape));
  }
  template <typename T>
  static Array Over(std::shared_ptr<const void> keeps, const std::vector<T>& values,
                    std::vector<int64_t> shape) {
    return Over(std::move(keeps), std::span<const T>(values), std::move(shape));
  }
  // The same bytes as numbers of another type. Requires: a number of `type` has as many bytes.
  Array As(ArrayType type) const { return Array(keeps_, data_, type, shape_); }

  const void* data() const { return data_; }
  const std::shared_ptr<const void>& keeps() const { return keeps_; }
  ArrayType type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const;  // Product of the shape.

 private:
  Array(std::shared_ptr<const void> keeps, const void* data, ArrayType type,
        std::vector<int64_t> shape)
      : keeps_(std::move(keeps)), data_(data), type_(type), shape_(std::move(shape)) {}

  std::shared_ptr<const void> keeps_;
  const void* data_;
  ArrayType type_;
  std::vector<int64_t> shape_;
};

}  // namespace hdps::python
