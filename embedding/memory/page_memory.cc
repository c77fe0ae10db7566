// Allocates short ranges from the heap and maps long ones.
#include "embedding/memory/page_memory.h"

#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "common/platform/memory_full.h"

namespace hdps {
namespace {

constexpr std::align_val_t kLine{64};
constexpr size_t kPageBytes = 4096;

// Returns whether a range of this length is mapped. The heap often keeps what it gets back: arrays
// that grow would leave as much memory behind as they use.
bool Mapped(size_t bytes) { return bytes >= (128 << 10); }

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Maps at an aligned address: the system only aligns to a page, so this maps more and unmaps both
// ends.
std::byte* MapAligned(size_t bytes) {
  const size_t whole = RoundUp(bytes, kPageBytes);
  const size_t more = whole + (bytes >= kHugePageBytes ? kHugePageBytes : 0);
  void* mapped = mmap(nullptr, more, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw MemoryFull(more);
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  if (more == whole) return begin;
  std::byte* const data = begin + (RoundUp(address, kHugePageBytes) - address);
  if (data > begin) munmap(begin, static_cast<size_t>(data - begin));
  std::byte* const end = data + whole;
  if (end < begin + more) munmap(end, static_cast<size_t>(begin + more - end));
  return data;
}

}  // namespace

PageMemory::PageMemory(size_t bytes) : size_(bytes) {
  const MemoryFor rows(
      "rows of the tables (their dim and number; 64 MiB of addresses at a time for each table in "
      "each of cluster.shards)");
  if (Mapped(bytes)) {
    data_ = MapAligned(bytes);
  } else if (bytes > 0) {
    data_ = static_cast<std::byte*>(::operator new(bytes, kLine));
    std::memset(data_, 0, bytes);
  }
}

PageMemory::~PageMemory() {
  if (Mapped(size_)) {
    munmap(data_, RoundUp(size_, kPageBytes));
  } else if (size_ > 0) {
    ::operator delete(data_, kLine);
  }
}

void PageMemory::AskForHugePages(size_t begin, size_t bytes) {
  if (size_ < kHugePageBytes) return;
  // A hint: a system without huge pages gives small ones.
  (void)madvise(data_ + begin, RoundUp(bytes, kPageBytes), MADV_HUGEPAGE);
}

void PageMemory::Touch(size_t begin, size_t bytes) {
  if (!Mapped(size_)) return;
  // Adding zero is a write, which allocates the page. (Asking the system to populate all pages
  // would hold a lock of the whole process while pages are cleared.)
  const size_t end = std::min(begin + bytes, size_);
  for (size_t at = begin / kPageBytes * kPageBytes; at < end; at += kPageBytes) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(data_ + at), 0, __ATOMIC_RELAXED);
  }
}

void PageMemory::Release(size_t begin, size_t bytes) {
  if (!Mapped(size_)) return;
  const size_t first = RoundUp(begin, kPageBytes);
  const size_t end = (begin + bytes) / kPageBytes * kPageBytes;
  if (end <= first) return;
  PCHECK(madvise(data_ + first, end - first, MADV_DONTNEED) == 0);
}

}  // namespace hdps
