// Shared memory in which one process lends blocks of bytes to another on the same machine: the
// sender's arena and the receiver's view of it.
//
// The first part of the memory is for control. It holds a label that identifies the arena, and one
// word for each chunk in which the receiver records the state of the block that begins there. Only
// the receiver writes words and only the sender writes data. The sender keeps its own books, so
// whatever a receiver writes, the sender loses at most what it lent to that receiver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/net/shared/shared_memory.h"

namespace hdps {

// Identifies an arena by its owner, its receiver, and a secret number.
struct ArenaLabel {
  uint64_t owner = 0;     // PeerId of the sender.
  uint64_t receiver = 0;  // PeerId of the receiver.
  uint64_t secret = 0;

  bool operator==(const ArenaLabel&) const = default;
};

// Names a block on the wire in place of its bytes.
struct SharedBlock {
  uint64_t arena = 0;  // `secret` of the arena's label.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t sequence = 0;  // 1, 2, ... in the order in which blocks and marks are sent.
};

inline constexpr size_t kArenaChunkBytes = 16u << 10;  // A block occupies whole chunks.
inline constexpr size_t kArenaBytesMax = size_t{1} << 30;

struct ArenaControl;

// The sender's side. Any thread may make and release buffers; one thread sends blocks and marks.
//
// Invariant: no two blocks in use overlap. A block is reused only after this process has released
// it and the receiver has released it or can no longer get it. Blocks are allocated from the low
// end, so the arena takes only as much memory as was ever in use at once.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // Creates an arena with `data_bytes` for blocks: a multiple of kArenaChunkBytes, at most
  // kArenaBytesMax.
  static Result<std::shared_ptr<SharedArena>> Create(const ArenaLabel& label, size_t data_bytes);
  ~SharedArena();

  const ArenaLabel& label() const { return label_; }
  SharedPlace place() const { return memory_->place(); }

  // Copies `bytes` into a block. Returns false if there is no room; then they must be sent another
  // way.
  bool Put(std::span<const std::byte> bytes, SharedBlock* block) HDPS_EXCLUDES(mutex_);
  // Allocates a block for the caller to fill through `*bytes` and lend later. Returns an empty
  // Buffer if there is no room.
  Buffer Make(size_t size, std::span<std::byte>* bytes) HDPS_EXCLUDES(mutex_);
  // Marks the block of a buffer from Make() as sent now. Returns false for any other buffer, and
  // while the block is already lent.
  bool Lend(const Buffer& made, SharedBlock* block) HDPS_EXCLUDES(mutex_);
  // Takes back a block that was not sent after all.
  void TakeBack(const SharedBlock& block) HDPS_EXCLUDES(mutex_);
  // Returns a number to send in the same order as blocks. Once the receiver has seen it
  // (SharedView::Pass), blocks with lower numbers that it has not taken were lost in transit, and
  // their room is free again.
  uint64_t NextMark() HDPS_EXCLUDES(mutex_);

  // Number of blocks that this process holds, or that were sent and, as far as is known, not
  // released.
  size_t blocks_out() HDPS_EXCLUDES(mutex_);

 private:
  struct Range {
    uint32_t first = 0, count = 0;  // First chunk and number of chunks.
    uint64_t sequence = 0;          // 0 means not sent.
    bool held = false;              // A buffer of this process refers to it.
    bool lent = false;              // Sent, and not returned yet.
  };

  SharedArena(const ArenaLabel& label, std::unique_ptr<SharedMemory> memory, size_t data_bytes);
  // Adds a range for `bytes` to out_, neither held nor lent. Returns false if there is no room.
  bool FindRoom(size_t bytes, Range* range) HDPS_REQUIRES(mutex_);
  bool FindChunks(uint32_t count, uint32_t* first) HDPS_REQUIRES(mutex_);
  void Release(const Range& range) HDPS_REQUIRES(mutex_);
  void Sweep() HDPS_REQUIRES(mutex_);  // Reclaims blocks that the receiver released or never got.
  SharedBlock BlockOf(const Range& range, size_t bytes) const;
  void LetGo(uint32_t first) HDPS_EXCLUDES(mutex_);

  const ArenaLabel label_;
  const std::unique_ptr<SharedMemory> memory_;
  ArenaControl* const control_;
  std::byte* const data_;
  const uint32_t num_chunks_;
  Mutex mutex_;
  // Free runs of chunks: first -> count. No two runs touch.
  std::map<uint32_t, uint32_t> free_ HDPS_GUARDED_BY(mutex_);
  std::vector<Range> out_ HDPS_GUARDED_BY(mutex_);
  uint32_t committed_ HDPS_GUARDED_BY(mutex_) = 0;  // Chunks with memory, from the first.
  uint64_t next_sequence_ HDPS_GUARDED_BY(mutex_) = 1;
  uint64_t returns_seen_ HDPS_GUARDED_BY(mutex_) = 0, passed_seen_ HDPS_GUARDED_BY(mutex_) = 0;
};

// The receiver's side. One thread takes blocks; any thread may release buffers.
class SharedView : public std::enable_shared_from_this<SharedView> {
 public:
  // Errors: kInvalidArgument if the memory at `place` is not the arena with this label.
  static Result<std::shared_ptr<SharedView>> Open(const SharedPlace& place,
                                                  const ArenaLabel& label);
  ~SharedView();

  const ArenaLabel& label() const { return label_; }
  // Returns the bytes of a block in place. The block returns to the sender when its last holder
  // releases it. Errors: kCorruption if the arena has no such block, or if it is out of order.
  Result<Buffer> Take(const SharedBlock& block);
  // Notes that everything before `sequence` has arrived or never will.
  void Pass(uint64_t sequence);

 private:
  SharedView(const ArenaLabel& label, std::unique_ptr<SharedMemory> memory, size_t data_bytes);

  const ArenaLabel label_;
  const std::unique_ptr<SharedMemory> memory_;
  ArenaControl* const control_;
  const std::byte* const data_;
  const size_t data_bytes_;
  uint64_t last_sequence_ = 0;
};

}  // namespace hdps
