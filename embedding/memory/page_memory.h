// Zeroed memory straight from the system, whose pages are allocated when they are first touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace hdps {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Owns a range of address space that begins at a multiple of 64 bytes, or of kHugePageBytes if it
// is at least that long. Each page is allocated when it is first touched.
//
// Invariant: a byte that was never written, or was released since, reads as zero.
class PageMemory {
 public:
  PageMemory() = default;
  explicit PageMemory(size_t bytes);
  PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PageMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Asks the system for huge pages for what is touched in [begin, begin + bytes) from now on.
  void AskForHugePages(size_t begin, size_t bytes);
  // Allocates the pages of [begin, begin + bytes). A page that is read before it is written would
  // fault twice: first for the shared page of zeros, then for its own.
  void Touch(size_t begin, size_t bytes);
  // Returns the whole pages inside [begin, begin + bytes) to the system.
  void Release(size_t begin, size_t bytes);

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
