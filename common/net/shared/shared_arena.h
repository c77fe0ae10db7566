// Blocks of bytes that one process lends to another on the same machine: the sender's arena, the
// receiver's view of it.
//
// The first part of the memory is for control: a label by which the receiver knows the arena, and
// one word a chunk in which it says what became of the block that begins there. Only the receiver
// writes words and only the sender writes data, and the sender keeps its own books: whatever a
// receiver writes, the sender loses at most what it lent to that one.
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

// Whose arena it is, for whom, and a number that nobody else can know.
struct ArenaLabel {
  uint64_t owner = 0;     // PeerId of the sender.
  uint64_t receiver = 0;  // PeerId of the receiver.
  uint64_t secret = 0;

  bool operator==(const ArenaLabel&) const = default;
};

// Names a block on the wire, instead of its bytes.
struct SharedBlock {
  uint64_t arena = 0;  // The label's secret.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t sequence = 0;  // 1, 2, ... in the order in which blocks and marks are sent.
};

inline constexpr size_t kArenaChunkBytes = 16u << 10;  // A block takes whole chunks.
inline constexpr size_t kArenaBytesMax = size_t{1} << 30;

struct ArenaControl;

// The sender's side. Any thread may make buffers and let go of them; one sends blocks and marks.
//
// Invariant: no two blocks that are out overlap, and a block is used again only after the receiver
// has let go of it or can no longer get it, and nobody here holds it. Blocks are low in the arena,
// so it takes only as much memory as was ever out at once.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // `data_bytes` for blocks, a multiple of kArenaChunkBytes, at most kArenaBytesMax.
  static Result<std::shared_ptr<SharedArena>> Create(const ArenaLabel& label, size_t data_bytes);
  ~SharedArena();

  const ArenaLabel& label() const { return label_; }
  SharedPlace place() const { return memory_->place(); }

  // Copies `bytes` into a block. False when there is no room: send them another way.
  bool Put(std::span<const std::byte> bytes, SharedBlock* block) HDPS_EXCLUDES(mutex_);
  // A block for the caller to fill through `*bytes`, to be lent later. Empty when there is no room.
  Buffer Make(size_t size, std::span<std::byte>* bytes) HDPS_EXCLUDES(mutex_);
  // The block of a buffer that was made here, to be sent now. False for any other buffer, and while
  // it is out already.
  bool Lend(const Buffer& made, SharedBlock* block) HDPS_EXCLUDES(mutex_);
  // For a block that was not sent after all.
  void TakeBack(const SharedBlock& block) HDPS_EXCLUDES(mutex_);
  // A number to send in the same order as blocks. Once the receiver has seen it (SharedView::Pass),
  // blocks of lower numbers that it has not taken were lost on the way, and there is room again.
  uint64_t NextMark() HDPS_EXCLUDES(mutex_);

  // Held here, or sent and not let go by the receiver so far as is known.
  size_t blocks_out() HDPS_EXCLUDES(mutex_);

 private:
  struct Range {
    uint32_t first = 0, count = 0;  // Chunks.
    uint64_t sequence = 0;          // 0: not sent.
    bool held = false;              // By a buffer of this process.
    bool lent = false;              // Sent, and not home yet.
  };

  SharedArena(const ArenaLabel& label, std::unique_ptr<SharedMemory> memory, size_t data_bytes);
  // A range that is in out_, neither held nor lent.
  bool FindRoom(size_t bytes, Range* range) HDPS_REQUIRES(mutex_);
  bool FindChunks(uint32_t count, uint32_t* first) HDPS_REQUIRES(mutex_);
  void Release(const Range& range) HDPS_REQUIRES(mutex_);
  void Sweep() HDPS_REQUIRES(mutex_);  // Takes home what the receiver let go or never got.
  SharedBlock BlockOf(const Range& range, size_t bytes) const;
  void LetGo(uint32_t first) HDPS_EXCLUDES(mutex_);

  const ArenaLabel label_;
  const std::unique_ptr<SharedMemory> memory_;
  ArenaControl* const control_;
  std::byte* const data_;
  const uint32_t num_chunks_;
  Mutex mutex_;
  std::map<uint32_t, uint32_t> free_ HDPS_GUARDED_BY(mutex_);  // First -> count; no two touch.
  std::vector<Range> out_ HDPS_GUARDED_BY(mutex_);
  uint32_t committed_ HDPS_GUARDED_BY(mutex_) = 0;  // Chunks that have memory, from the first.
  uint64_t next_sequence_ HDPS_GUARDED_BY(mutex_) = 1;
  uint64_t returns_seen_ HDPS_GUARDED_BY(mutex_) = 0, passed_seen_ HDPS_GUARDED_BY(mutex_) = 0;
};

// The receiver's side. One thread takes; buffers may be let go from any.
class SharedView : public std::enable_shared_from_this<SharedView> {
 public:
  // kInvalidArgument when what is at `place` is not the arena with this label.
  static Result<std::shared_ptr<SharedView>> Open(const SharedPlace& place,
                                                  const ArenaLabel& label);
  ~SharedView();

  const ArenaLabel& label() const { return label_; }
  // The bytes of a block, in place; the block goes back when the last holder lets go.
  // kCorruption when the arena has no such block, or it is out of order.
  Result<Buffer> Take(const SharedBlock& block);
  // Everything before `sequence` has come or never will.
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
