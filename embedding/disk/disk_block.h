// One block of rows on disk: how its bytes are laid out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/disk/disk_store.h"

namespace hdps {

// Reads a block's bytes: the XXH3 of all that follows, the number of rows, their keys in ascending
// order, then the rows.
class DiskBlockRows {
 public:
  static constexpr size_t kHeaderBytes = 2 * sizeof(uint64_t);
  // Returns the bytes of a block of `rows` rows.
  static constexpr size_t BytesOf(size_t rows, size_t row_bytes) {
    return kHeaderBytes + rows * (sizeof(Key) + row_bytes);
  }

  DiskBlockRows() = default;
  // Copies the bytes only if keys would not be aligned.
  Status Open(std::span<const std::byte> bytes, size_t row_bytes, const DiskStore& disk) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(Key) != 0) bytes = Copy(bytes);
    uint64_t header[2] = {0, 0};
    if (bytes.size() >= kHeaderBytes) std::memcpy(header, bytes.data(), kHeaderBytes);
    const uint64_t rows = header[1];
    if (rows > bytes.size() || bytes.size() != BytesOf(rows, row_bytes) ||
        HashBytes(bytes.subspan(sizeof(uint64_t))) != header[0]) {
      return disk.Damaged("a block of " + std::to_string(bytes.size()) +
                          " bytes is not as it was written");
    }
    keys_ = {reinterpret_cast<const Key*>(bytes.data() + kHeaderBytes), rows};
    rows_ = bytes.subspan(kHeaderBytes + rows * sizeof(Key));
    row_bytes_ = row_bytes;
    return {};
  }
  // Like Open, but always copies.
  Status OpenCopy(std::span<const std::byte> bytes, size_t row_bytes, const DiskStore& disk) {
    return Open(Copy(bytes), row_bytes, disk);
  }
  std::span<const Key> keys() const { return keys_; }
  std::span<const std::byte> Row(size_t r) const {
    return rows_.subspan(r * row_bytes_, row_bytes_);
  }

 private:
  std::span<const std::byte> Copy(std::span<const std::byte> bytes) {
    copy_.resize((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(copy_)).begin());
    return std::as_bytes(std::span(copy_)).first(bytes.size());
  }

  std::vector<uint64_t> copy_;
  std::span<const Key> keys_;
  std::span<const std::byte> rows_;
  size_t row_bytes_ = 0;
};

}  // namespace hdps
