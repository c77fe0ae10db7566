// Keeps lines in blocks of cache lines that are reused as soon as they are free.
#include "worker/data/shuffle_window.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/platform/memory_full.h"

namespace hdps {
namespace {

// A window that grows large uses huge pages, because lines are taken from all over the chunks.
constexpr size_t kSmallChunkBytes = size_t{256} << 10;
constexpr size_t kLargeChunkBytes = size_t{2} << 20;
constexpr size_t kSmallWindowBytes = size_t{4} << 20;
constexpr size_t kCacheLineBytes = 64;

size_t BlockBytes(size_t bytes) { return WindowLines(bytes) * kCacheLineBytes; }

void PrefetchText(const char* text, size_t size) {
  constexpr size_t kBytesMax = 8 * kCacheLineBytes;
  for (size_t at = 0; at < std::min(size, kBytesMax); at += kCacheLineBytes) {
    __builtin_prefetch(text + at);
  }
}

}  // namespace

void ShuffleWindow::Restart(uint64_t seed) {
  draws_.Restart(seed);
  lines_.clear();
  chunks_.clear();
  free_.clear();
  held_bytes_ = live_bytes_ = 0;
}

void ShuffleWindow::Add(const Line& line) {
  const MemoryFor window("the shuffle window (data.shuffle_rows)");
  const auto size = static_cast<uint32_t>(line.text.size());
  char* const text = NewBlock(size);
  if (size > 0) std::memcpy(text, line.text.data(), size);
  lines_.push_back({text, line.place.number, line.row, size, line.place.file});
  live_bytes_ += BlockBytes(size);
  if (held_bytes_ > live_bytes_ + live_bytes_ / 2 + 2 * chunks_.back().size) MoveAll();
}

Line ShuffleWindow::RemoveAny() {
  DCHECK(!lines_.empty());
  const size_t size = lines_.size(), chosen = draws_.Next(size);
  // Prefetches for the draws to come, unless the window runs empty before: first a line's record,
  // and half the way later its text.
  __builtin_prefetch(&lines_[draws_.Peek(WindowDraws::kPrefetch - 1, size)]);
  const HeldLine& soon = lines_[draws_.Peek(WindowDraws::kPrefetch / 2 - 1, size)];
  PrefetchText(soon.text, soon.size);

  const HeldLine taken = lines_[chosen];
  lines_[chosen] = lines_.back();
  lines_.pop_back();
  free_[WindowLines(taken.size)].push_back(taken.text);
  live_bytes_ -= BlockBytes(taken.size);
  return {{taken.text, taken.size}, {taken.file, taken.number}, taken.row};
}

char* ShuffleWindow::NewBlock(size_t size) {
  const size_t cache_lines = WindowLines(size), bytes = BlockBytes(size);
  if (cache_lines >= free_.size()) free_.resize(cache_lines + 1);
  std::vector<char*>& free = free_[cache_lines];
  if (!free.empty()) {
    char* const block = free.back();
    free.pop_back();
    return block;
  }
  if (chunks_.empty() || chunks_.back().size - chunks_.back().used < bytes) AddChunk(bytes);
  Chunk& chunk = chunks_.back();
  auto* const block = reinterpret_cast<char*>(chunk.bytes.get()) + chunk.used;
  chunk.used += bytes;
  return block;
}

void ShuffleWindow::AddChunk(size_t bytes_min) {
  const size_t usual = held_bytes_ < kSmallWindowBytes ? kSmallChunkBytes : kLargeChunkBytes;
  Chunk& chunk = chunks_.emplace_back();
  chunk.size = std::max(usual, bytes_min);
  chunk.bytes = NewPageBlock(chunk.size);
  held_bytes_ += chunk.size;
}

void ShuffleWindow::MoveAll() {
  const std::vector<Chunk> old = std::exchange(chunks_, {});
  free_.clear();
  held_bytes_ = 0;
  for (HeldLine& line : lines_) {
    char* const text = NewBlock(line.size);
    std::memcpy(text, line.text, line.size);
    line.text = text;
  }
}

}  // namespace hdps
