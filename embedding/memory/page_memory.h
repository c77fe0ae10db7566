// Memory straight from the system: zeroed, and there only once it is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace hdps {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// A range of address space that begins at a multiple of 64 bytes, of kHugePageBytes if it is that
// long or longer. A page of it takes memory from its first touch on.
//
// Invariant: what was never written, or was released since, reads as zero.
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

  // Asks the system for huge pages where [begin, begin + bytes) is touched from now on.
  void AskForHugePages(size_t begin, size_t bytes);
  // Takes memory for the pages that [begin, begin + bytes) lies in. A page that is read before it
  // is written would be taken twice: first a page of zeros that all share, then its own.
  void Touch(size_t begin, size_t bytes);
  // Gives back the whole pages inside [begin, begin + bytes).
  void Release(size_t begin, size_t bytes);

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
