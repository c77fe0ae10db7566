// Allocates long sections in huge pages and reuses their memory for the next section that fits.
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/net/section_allocator.h"

namespace hdps {
namespace {

// Shorter sections come from the heap, which reuses freed memory by itself.
constexpr size_t kKeptBytesMin = size_t{8} << 20;
constexpr size_t kHugePageBytes = size_t{2} << 20;
// Enough for a server's replies and a worker's pushes with one of each in transit.
constexpr size_t kKeptMax = 4;

struct Block {
  explicit Block(size_t bytes)
      : size(bytes),
        data(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kHugePageBytes}))) {
    (void)madvise(data, size, MADV_HUGEPAGE);  // Only a hint, so errors are ignored.
  }
  ~Block() { ::operator delete (data, std::align_val_t{kHugePageBytes}); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const size_t size;
  std::byte* const data;
};

// A pool of unused blocks.
//
// Invariant: holds at most kKeptMax blocks; the oldest leaves first.
class FreeBlocks {
 public:
  std::unique_ptr<Block> Take(size_t bytes) HDPS_EXCLUDES(mutex_) {
    // Sections of one kind vary little in size from step to step.
    const auto fits = [bytes](const auto& block) {
      return block->size >= bytes && block->size / 2 <= bytes;
    };
    {
      MutexLock lock(mutex_);
      const auto found = std::ranges::find_if(blocks_, fits);
      if (found != blocks_.end()) {
        std::unique_ptr<Block> block = std::move(*found);
        blocks_.erase(found);
        return block;
      }
    }
    const size_t room = bytes + bytes / 8;
    return std::make_unique<Block>((room + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes);
  }

  void Keep(std::unique_ptr<Block> block) HDPS_EXCLUDES(mutex_) {
    std::unique_ptr<Block> surplus;  // Freed after the lock is released.
    MutexLock lock(mutex_);
    blocks_.push_back(std::move(block));
    if (blocks_.size() <= kKeptMax) return;
    surplus = std::move(blocks_.front());
    blocks_.erase(blocks_.begin());
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_ HDPS_GUARDED_BY(mutex_);
};

class KeptSections : public SectionAllocator {
 public:
  Buffer Make(PeerId /*to*/, size_t size, std::span<std::byte>* bytes) override {
    if (size < kKeptBytesMin) return Buffer::Allocate(size, bytes);
    Block* const block = free_->Take(size).release();
    std::shared_ptr<const void> owner(block->data, [block, free = free_](const void*) {
      free->Keep(std::unique_ptr<Block>(block));
    });
    *bytes = {block->data, size};
    return Buffer(std::move(owner), block->data, size);
  }

 private:
  const std::shared_ptr<FreeBlocks> free_ = std::make_shared<FreeBlocks>();
};

}  // namespace

std::unique_ptr<SectionAllocator> NewKeptSections() { return std::make_unique<KeptSections>(); }

}  // namespace hdps
