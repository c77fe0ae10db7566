// Grows the index by runs of used slots, and erases by shifting back.
#include "embedding/memory/row_index.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

constexpr double kLinesMin = 4;
// Indexes differ by this factor at most, and a long one grows by it. Less is moved for each key by
// a larger one, and less is empty with a smaller one.
constexpr double kGrowth = 1.25;
// A short index doubles.
constexpr double kShortLines = 512;
// Arrays up to this length are moved at once, in a few microseconds.
constexpr size_t kMoveAtOnceSlots = 1024;
// Slots moved for each key that may come. Until the last one has moved, the slots of before become
// fuller, from four fifths to less than seven eighths.
constexpr size_t kMoveSlotsPerKey = 16;
// Lines that are moved together.
constexpr size_t kRunLines = 16;
constexpr size_t kPageBytes = 4096;
// Up to this length an array takes no more than it needs from the heap.
constexpr size_t kHeapBytesMax = 16 * kPageBytes;
// A longer array takes huge pages. The waste is 1 MiB on average, so a short one should not.
constexpr size_t kSmallPagesMax = size_t{16} << 20;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Returns the factor by which an index grows.
double GrowthOf(double lines) { return lines < kShortLines ? 2 : kGrowth; }

// Returns how much address space an array of that length takes, so that it seldom gets more.
size_t SpaceFor(size_t bytes) { return bytes <= kHeapBytesMax ? bytes : std::bit_ceil(bytes); }

}  // namespace

double RowIndex::LinesMin(uint32_t turn) {
  return kLinesMin * (1 + (kGrowth - 1) * SpreadPoint(turn));
}

RowIndex::Size RowIndex::SizeOf(double exact) {
  const auto bytes = static_cast<size_t>(exact) * kLineBytes;
  const size_t unit = bytes > kSmallPagesMax  ? kHugePageBytes
                      : bytes > kHeapBytesMax ? kPageBytes
                                              : kLineBytes;
  return {exact, RoundUp(bytes, unit) / kLineBytes};
}

RowIndex::Size RowIndex::SizeFor(size_t keys, Size from) {
  while (!from.Holds(keys)) from = SizeOf(from.exact * GrowthOf(from.exact));
  return from;
}

RowIndex::RowIndex(uint64_t salt, uint32_t turn) : salt_(salt), lines_min_(LinesMin(turn)) {
  SetLines(SizeOf(lines_min_));
  lines_before_ = lines();
}

size_t RowIndex::PredictBytes(size_t keys) {
  const Size longest = SizeFor(keys, SizeOf(kLinesMin));
  // Indexes with a later turn are longer; those that were long enough have not grown to this yet.
  const double needed = static_cast<double>(keys) * 5 / 4 / kLineSlots;
  double shortest = kLinesMin;
  while (shortest * GrowthOf(shortest) < needed) shortest *= GrowthOf(shortest);
  const double grown = std::clamp((needed / shortest - 1) / (kGrowth - 1), 0.0, 1.0);
  // The integrals of 1 + (kGrowth - 1) * turn over all turns, and over those that have grown.
  const double slope = (kGrowth - 1) / 2;
  const double factor = 1 + slope + (GrowthOf(shortest) - 1) * (grown + slope * grown * grown);
  return static_cast<size_t>(shortest * factor * kLineBytes) +
         (longest.bytes() > kSmallPagesMax ? kHugePageBytes / 2 : 0);
}

// Sets the length of the array, whose slots stay where they are.
void RowIndex::SetLines(Size size) {
  const size_t space = SpaceFor(size.bytes());
  if (space > memory_.size()) {
    memory_.Grow(space);
    if (size.bytes() > kSmallPagesMax) memory_.AskForHugePages(0, space);
  }
  size_now_ = size;
  begin_ = reinterpret_cast<RowSlot*>(memory_.data());
  end_ = begin_ + size.lines * kLineSlots;
}

void RowIndex::Prepare(size_t more) {
  if (growing()) {
    const bool crowded = (size_ + more) * 8 > lines_before_ * kLineSlots * 7;
    Move(crowded ? lines_before_ * kLineSlots : more * kMoveSlotsPerKey);
  }
  if (Fits(more)) return;
  if (growing()) Move(lines_before_ * kLineSlots);
  StartGrowing(more);
  const size_t before = lines_before_ * kLineSlots;
  const bool at_once = before <= kMoveAtOnceSlots || (size_ + more) * 8 > before * 7;
  Move(at_once ? before : kMoveAtOnceSlots);
}

void RowIndex::Shrink(size_t more) {
  const Size size = SizeFor(size_ + more, SizeOf(lines_min_));
  if (size.lines >= lines()) return;
  if (growing()) Move(lines_before_ * kLineSlots);
  const PageMemory before = std::exchange(memory_, PageMemory());
  const std::span slots(begin_, end_);
  SetLines(size);
  lines_before_ = lines();
  for (const RowSlot& slot : slots) {
    if (slot.used()) Place(slot);
  }
}

void RowIndex::StartGrowing(size_t more) {
  // The run at the end may go around it.
  const size_t unmoved = TakeRun(lines());
  lines_before_ = lines();
  touched_ = SizeFor(size_ + more, size_now_).bytes();
  SetLines(SizeFor(size_ + more, size_now_));
  unmoved_ = unmoved;
  TouchAhead(unmoved_);
  PlaceRun();
  if (!growing()) lines_before_ = lines();
}

void RowIndex::TouchAhead(size_t first) {
  const size_t line = first * lines() / lines_before_;
  const size_t from = std::max(line, lines_before_) * kLineBytes / kPageBytes * kPageBytes;
  if (from >= touched_) return;
  memory_.Touch(from, touched_ - from);
  touched_ = from;
}

void RowIndex::Move(size_t slots) {
  const size_t moved = slots / kLineSlots;
  const size_t goal = unmoved_ - std::min(unmoved_, moved);
  TouchAhead(goal);
  while (unmoved_ > goal) {
    unmoved_ = TakeRun(unmoved_);
    PlaceRun();
  }
  if (!growing()) lines_before_ = lines();
}

size_t RowIndex::TakeRun(size_t end) {
  size_t first = end - std::min(end, kRunLines);
  while (first > 0 && IsFull(first - 1)) --first;
  size_t behind = end, taken = end - first;
  for (; IsFull(behind - 1) && taken < lines(); ++taken) behind = behind % lines() + 1;
  run_.resize(taken * kLineSlots);
  RowSlot* const from = begin_ + first * kLineSlots;
  const size_t before_end = std::min<size_t>(run_.size(), static_cast<size_t>(end_ - from));
  std::copy_n(from, before_end, run_.begin());
  std::fill_n(from, before_end, RowSlot());
  std::copy_n(begin_, run_.size() - before_end,
              run_.begin() + static_cast<std::ptrdiff_t>(before_end));
  std::fill_n(begin_, run_.size() - before_end, RowSlot());
  return first;
}

void RowIndex::PlaceRun() {
  for (const RowSlot& slot : run_) {
    if (slot.used()) Place(slot);
  }
}

void RowIndex::Place(const RowSlot& slot) {
  RowSlot* line = Home(slot.key);
  uint32_t empty = EmptyInLine(line);
  while (empty == 0) empty = EmptyInLine(line = NextLine(line));
  line[std::countr_zero(empty)] = slot;
}

void RowIndex::Erase(RowSlot* slot) {
  // Returns how many slots behind `from` a slot lies.
  const auto distance = [this](const RowSlot* from, const RowSlot* to) {
    return to >= from ? to - from : to - from + (end_ - begin_);
  };
  for (RowSlot* behind = Wrapped(slot + 1); behind->used(); behind = Wrapped(behind + 1)) {
    // The slot may move into the hole unless the hole lies before its home.
    if (distance(Home(behind->key), behind) < distance(slot, behind)) continue;
    *slot = *behind;
    slot = behind;
  }
  *slot = RowSlot();
  --size_;
}

}  // namespace hdps
