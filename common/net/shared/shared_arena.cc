// Allocates blocks first-fit from the low end; the receiver's words say when they are free again.
#include "common/net/shared/shared_arena.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <string>

namespace hdps {

namespace {
constexpr uint64_t kArenaMagic = 0x31414e4552415048;  // "HPARENA1" in memory order.
constexpr uint32_t kCommitChunks = 128;               // 2 MiB at a time.
using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(uint64_t));
}  // namespace

// The head of the memory. A Word for each chunk of data follows it.
struct ArenaControl {
  uint64_t magic = kArenaMagic;
  ArenaLabel label;
  uint64_t data_bytes = 0;
  // Written by the receiver, each on a cache line of its own.
  alignas(64) Word passed = 0;   // The highest sequence it has taken or passed.
  alignas(64) Word returns = 0;  // The number of blocks released.
  alignas(64) uint64_t end = 0;

  // The word of the block that begins at `chunk`: its sequence times two, plus one once released.
  Word& word(size_t chunk) { return reinterpret_cast<Word*>(this + 1)[chunk]; }
};

namespace {

size_t ControlBytes(size_t data_bytes) {
  constexpr size_t kPage = 4096;
  const size_t bytes = sizeof(ArenaControl) + data_bytes / kArenaChunkBytes * sizeof(Word);
  return (bytes + kPage - 1) / kPage * kPage;
}

uint32_t ChunksOf(size_t bytes) {
  return static_cast<uint32_t>((bytes + kArenaChunkBytes - 1) / kArenaChunkBytes);
}

}  // namespace

// ---- The sender.

Result<std::shared_ptr<SharedArena>> SharedArena::Create(const ArenaLabel& label,
                                                         size_t data_bytes) {
  CHECK(data_bytes > 0 && data_bytes % kArenaChunkBytes == 0 && data_bytes <= kArenaBytesMax);
  const size_t control_bytes = ControlBytes(data_bytes);
  HDPS_ASSIGN_OR_RETURN(auto memory, SharedMemory::Create(control_bytes + data_bytes));
  if (!memory->Commit(0, control_bytes)) {
    return Status(Code::kIoError, "no memory to share with another process");
  }
  return std::shared_ptr<SharedArena>(new SharedArena(label, std::move(memory), data_bytes));
}

SharedArena::SharedArena(const ArenaLabel& label, std::unique_ptr<SharedMemory> memory,
                         size_t data_bytes)
    : label_(label),
      memory_(std::move(memory)),
      control_(new (memory_->data()) ArenaControl()),
      data_(memory_->data() + ControlBytes(data_bytes)),
      num_chunks_(ChunksOf(data_bytes)) {
  control_->label = label;
  control_->data_bytes = data_bytes;
  free_[0] = num_chunks_;
}

SharedArena::~SharedArena() = default;

bool SharedArena::Put(std::span<const std::byte> bytes, SharedBlock* block) {
  {
    MutexLock lock(mutex_);
    Range range;
    if (!FindRoom(bytes.size(), &range)) return false;
    range.lent = true;
    range.sequence = next_sequence_++;
    out_.push_back(range);
    *block = BlockOf(range, bytes.size());
  }
  std::memcpy(data_ + block->offset, bytes.data(), bytes.size());
  return true;
}

Buffer SharedArena::Make(size_t size, std::span<std::byte>* bytes) {
  Range range;
  {
    MutexLock lock(mutex_);
    if (!FindRoom(size, &range)) return Buffer();
    range.held = true;
    out_.push_back(range);
  }
  std::byte* const data = data_ + range.first * kArenaChunkBytes;
  *bytes = {data, size};
  std::shared_ptr<const void> owner(data, [arena = shared_from_this(), first = range.first](
                                              const void*) { arena->LetGo(first); });
  return Buffer(std::move(owner), data, size);
}

bool SharedArena::Lend(const Buffer& made, SharedBlock* block) {
  if (made.empty() || made.data() < data_ ||
      made.data() >= data_ + num_chunks_ * kArenaChunkBytes) {
    return false;
  }
  const auto offset = static_cast<size_t>(made.data() - data_);
  MutexLock lock(mutex_);
  Sweep();
  const auto range = std::find_if(out_.begin(), out_.end(), [&](const Range& r) {
    return r.held && r.first * kArenaChunkBytes == offset;
  });
  if (range == out_.end() || range->lent || ChunksOf(made.size()) > range->count) return false;
  range->lent = true;
  range->sequence = next_sequence_++;
  *block = BlockOf(*range, made.size());
  return true;
}

void SharedArena::LetGo(uint32_t first) {
  MutexLock lock(mutex_);
  const auto range = std::find_if(out_.begin(), out_.end(),
                                  [&](const Range& r) { return r.held && r.first == first; });
  CHECK(range != out_.end());
  range->held = false;
  if (range->lent) return;
  Release(*range);
  out_.erase(range);
}

SharedBlock SharedArena::BlockOf(const Range& range, size_t bytes) const {
  return {label_.secret, range.first * kArenaChunkBytes, bytes, range.sequence};
}

uint64_t SharedArena::NextMark() {
  MutexLock lock(mutex_);
  return next_sequence_++;
}

bool SharedArena::FindRoom(size_t bytes, Range* range) {
  if (bytes == 0 || bytes > kArenaBytesMax) return false;
  Sweep();
  range->count = ChunksOf(bytes);
  return FindChunks(range->count, &range->first);
}

bool SharedArena::FindChunks(uint32_t count, uint32_t* first) {
  const auto room =
      std::find_if(free_.begin(), free_.end(), [&](const auto& r) { return r.second >= count; });
  if (room == free_.end()) return false;
  const auto [begin, size] = *room;
  if (begin + count > committed_) {
    const uint32_t until =
        std::min(num_chunks_, (begin + count + kCommitChunks - 1) / kCommitChunks * kCommitChunks);
    const size_t offset = static_cast<size_t>(data_ - memory_->data());
    if (!memory_->Commit(offset + committed_ * kArenaChunkBytes,
                         (until - committed_) * kArenaChunkBytes)) {
      return false;
    }
    committed_ = until;
  }
  free_.erase(room);
  if (size > count) free_[begin + count] = size - count;
  *first = begin;
  return true;
}

void SharedArena::Release(const Range& range) {
  uint32_t first = range.first, count = range.count;
  const auto after = free_.lower_bound(first);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && after->first == range.first + range.count) {
    count += after->second;
    free_.erase(after);
  }
  free_[first] = count;
}

void SharedArena::TakeBack(const SharedBlock& block) {
  MutexLock lock(mutex_);
  const auto range = std::find_if(out_.begin(), out_.end(),
                                  [&](const Range& r) { return r.sequence == block.sequence; });
  if (range == out_.end()) return;
  range->lent = false;
  if (range->held) return;
  Release(*range);
  out_.erase(range);
}

void SharedArena::Sweep() {
  // `passed` is read first, because a block's word is written before the receiver passes it.
  const uint64_t passed = control_->passed.load(std::memory_order_acquire);
  const uint64_t returns = control_->returns.load(std::memory_order_acquire);
  if (returns == returns_seen_ && passed == passed_seen_) return;
  returns_seen_ = returns;
  passed_seen_ = passed;
  size_t kept = 0;
  for (Range& range : out_) {
    const uint64_t word = control_->word(range.first).load(std::memory_order_acquire);
    const bool taken = word / 2 == range.sequence;
    if (taken ? word % 2 == 1 : range.sequence <= passed) range.lent = false;
    if (range.lent || range.held) {
      out_[kept++] = range;
    } else {
      Release(range);
    }
  }
  out_.resize(kept);
}

size_t SharedArena::blocks_out() {
  MutexLock lock(mutex_);
  Sweep();
  return out_.size();
}

// ---- The receiver.

Result<std::shared_ptr<SharedView>> SharedView::Open(const SharedPlace& place,
                                                     const ArenaLabel& label) {
  const auto wrong = [](const char* what) {
    return Status(Code::kInvalidArgument, std::string("the shared memory offered ") + what);
  };
  if (place.bytes <= ControlBytes(kArenaChunkBytes) ||
      place.bytes > ControlBytes(kArenaBytesMax) + kArenaBytesMax) {
    return wrong("has a size that no arena has");
  }
  // The size of the data determines the size of the control part; it is not verified yet.
  HDPS_ASSIGN_OR_RETURN(auto memory, SharedMemory::Open(place, sizeof(ArenaControl)));
  const auto* head = reinterpret_cast<const ArenaControl*>(memory->data());
  const size_t data_bytes = head->data_bytes;
  if (head->magic != kArenaMagic || head->label != label) return wrong("is not the peer's");
  if (data_bytes == 0 || data_bytes % kArenaChunkBytes != 0 || data_bytes > kArenaBytesMax ||
      ControlBytes(data_bytes) + data_bytes != place.bytes) {
    return wrong("has a size that no arena has");
  }
  HDPS_ASSIGN_OR_RETURN(memory, SharedMemory::Open(place, ControlBytes(data_bytes)));
  return std::shared_ptr<SharedView>(new SharedView(label, std::move(memory), data_bytes));
}

SharedView::SharedView(const ArenaLabel& label, std::unique_ptr<SharedMemory> memory,
                       size_t data_bytes)
    : label_(label),
      memory_(std::move(memory)),
      control_(std::launder(reinterpret_cast<ArenaControl*>(memory_->data()))),
      data_(memory_->data() + ControlBytes(data_bytes)),
      data_bytes_(data_bytes) {}

SharedView::~SharedView() = default;

Result<Buffer> SharedView::Take(const SharedBlock& block) {
  const bool inside = block.offset % kArenaChunkBytes == 0 && block.bytes > 0 &&
                      block.bytes <= data_bytes_ && block.offset <= data_bytes_ - block.bytes;
  if (!inside || block.sequence <= last_sequence_) {
    return Status(Code::kCorruption, "a shared block that its arena does not have");
  }
  last_sequence_ = block.sequence;
  const size_t chunk = block.offset / kArenaChunkBytes;
  control_->word(chunk).store(block.sequence * 2, std::memory_order_release);
  control_->passed.store(block.sequence, std::memory_order_release);
  const std::byte* data = data_ + block.offset;
  std::shared_ptr<const void> owner(
      data, [view = shared_from_this(), chunk, sequence = block.sequence](const void*) {
        view->control_->word(chunk).store(sequence * 2 + 1, std::memory_order_release);
        view->control_->returns.fetch_add(1, std::memory_order_release);
      });
  return Buffer(std::move(owner), data, block.bytes);
}

void SharedView::Pass(uint64_t sequence) {
  if (sequence <= last_sequence_) return;
  last_sequence_ = sequence;
  control_->passed.store(sequence, std::memory_order_release);
}

}  // namespace hdps
