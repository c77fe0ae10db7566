// Immutable bytes that threads and the transport share without copying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace hdps {

// An immutable range of bytes that lives as long as any Buffer refers to it. Copying a Buffer
// shares the bytes and never copies them, so a request can wait for its retry while it is on the
// wire.
//
// Invariant: data() is aligned to 8 bytes, and the bytes never change once shared.
class Buffer {
 public:
  Buffer() = default;
  // Shares `size` bytes at `data`, kept alive by `owner`. `data` must be aligned to 8 bytes.
  Buffer(std::shared_ptr<const void> owner, const void* data, size_t size)
      : owner_(std::move(owner)), data_(static_cast<const std::byte*>(data)), size_(size) {}

  // Allocates bytes, aligned to 64, for the caller to fill through `*bytes` before sharing.
  static Buffer Allocate(size_t size, std::span<std::byte>* bytes);
  static Buffer CopyOf(std::span<const std::byte> bytes);

  // Allocates `count` values of T, for the caller to fill through `*values` before sharing.
  template <typename T>
  static Buffer AllocateOf(size_t count, std::span<T>* values) {
    std::span<std::byte> bytes;
    Buffer buffer = Allocate(count * sizeof(T), &bytes);
    *values = {reinterpret_cast<T*>(bytes.data()), count};
    return buffer;
  }
  template <typename T>
  static Buffer CopyOf(std::span<const T> values) {
    return CopyOf(std::as_bytes(values));
  }

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Returns the bytes as an array of T. A rest shorter than one T is left out. T must be aligned to
  // at most 8 bytes.
  template <typename T>
  std::span<const T> As() const {
    static_assert(alignof(T) <= 8);
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
