// Lines in a log of chunks, taken at random and cleaned from the oldest end.
#include "worker/data/shuffle_window.h"

#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

// Lines are taken from all over the log: in pages of 4 KiB nearly every one of them costs a walk
// through the page tables, so a log that grows large is made of huge pages.
constexpr size_t kSmallChunkBytes = size_t{256} << 10;
constexpr size_t kLargeChunkBytes = size_t{2} << 20;
constexpr size_t kSmallLogBytes = size_t{4} << 20;
constexpr uint32_t kTaken = ~uint32_t{0};

// Before each line in a chunk; tells who owns the line when its chunk is emptied.
struct EntryHeader {
  uint32_t slot;  // Index into slots_, or kTaken.
  uint32_t size;  // Of the line.
};

size_t EntryBytes(size_t line_bytes) { return (sizeof(EntryHeader) + line_bytes + 7) / 8 * 8; }

EntryHeader HeaderOf(const char* text) {
  EntryHeader header;
  std::memcpy(&header, text - sizeof(header), sizeof(header));
  return header;
}

void SetOwner(char* text, uint32_t slot) {
  std::memcpy(text - sizeof(EntryHeader), &slot, sizeof(slot));
}

void PrefetchLine(const char* text) {
  constexpr size_t kCacheLineBytes = 64;
  const char* entry = text - sizeof(EntryHeader);
  for (size_t i = 0; i < 5; ++i) __builtin_prefetch(entry + i * kCacheLineBytes);
}

char* NewChunk(size_t bytes) {
  const size_t alignment = bytes % kLargeChunkBytes == 0 ? kLargeChunkBytes : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* const chunk = static_cast<char*>(std::aligned_alloc(alignment, rounded));
  CHECK(chunk != nullptr) << "no memory for " << bytes << " bytes of the shuffle window";
  if (alignment == kLargeChunkBytes) (void)madvise(chunk, rounded, MADV_HUGEPAGE);  // A wish.
  return chunk;
}

}  // namespace

void ShuffleWindow::Restart(uint64_t seed) {
  draws_.Restart(seed);
  slots_.clear();
  log_.clear();
  spare_ = {};
  held_bytes_ = live_bytes_ = 0;
}

void ShuffleWindow::Put(const Line& line) {
  const auto size = static_cast<uint32_t>(line.text.size());
  char* text = Append(line.text.data(), size, static_cast<uint32_t>(slots_.size()));
  slots_.push_back({text, line.place.number, size, line.place.file});
  live_bytes_ += EntryBytes(size);
  while (held_bytes_ > 2 * live_bytes_ + 2 * log_.back().size && log_.size() > 1) {
    EmptyOldestChunk();
  }
}

Line ShuffleWindow::TakeAny() {
  DCHECK(!slots_.empty());
  const size_t size = slots_.size(), chosen = draws_.Next(size);
  // Where these draws will fall unless the window runs empty before their turns come: first the
  // slot is brought near, half the way later the line.
  __builtin_prefetch(&slots_[draws_.Peek(WindowDraws::kAhead - 1, size)]);
  PrefetchLine(slots_[draws_.Peek(WindowDraws::kAhead / 2 - 1, size)].text);

  const Slot taken = slots_[chosen];
  SetOwner(taken.text, kTaken);
  live_bytes_ -= EntryBytes(taken.size);
  if (chosen + 1 < slots_.size()) {
    slots_[chosen] = slots_.back();
    SetOwner(slots_[chosen].text, static_cast<uint32_t>(chosen));
  }
  slots_.pop_back();
  return {{taken.text, taken.size}, {taken.file, taken.number}};
}

char* ShuffleWindow::Append(const char* text, uint32_t size, uint32_t slot) {
  const size_t entry_bytes = EntryBytes(size);
  if (log_.empty() || log_.back().size - log_.back().used < entry_bytes) AddChunk(entry_bytes);
  Chunk& chunk = log_.back();
  char* entry = chunk.bytes.get() + chunk.used;
  const EntryHeader header = {slot, size};
  std::memcpy(entry, &header, sizeof(header));
  if (size > 0) std::memcpy(entry + sizeof(header), text, size);
  chunk.used += entry_bytes;
  return entry + sizeof(header);
}

void ShuffleWindow::AddChunk(size_t entry_bytes) {
  Chunk chunk = std::exchange(spare_, {});
  const size_t usual = held_bytes_ < kSmallLogBytes ? kSmallChunkBytes : kLargeChunkBytes;
  if (chunk.size < std::max(usual, entry_bytes)) {
    chunk.size = std::max(usual, entry_bytes);
    chunk.bytes.reset(NewChunk(chunk.size));
  }
  chunk.used = 0;
  held_bytes_ += chunk.size;
  log_.push_back(std::move(chunk));
}

void ShuffleWindow::EmptyOldestChunk() {
  Chunk oldest = std::move(log_.front());
  log_.pop_front();
  held_bytes_ -= oldest.size;
  for (size_t at = 0; at < oldest.used;) {
    const char* text = oldest.bytes.get() + at + sizeof(EntryHeader);
    const EntryHeader header = HeaderOf(text);
    if (header.slot != kTaken) slots_[header.slot].text = Append(text, header.size, header.slot);
    at += EntryBytes(header.size);
  }
  if (oldest.size <= kLargeChunkBytes) spare_ = std::move(oldest);
}

}  // namespace hdps
