// Grows the index by runs of used slots, and erases by shifting back.
#include "embedding/memory/row_index.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>

namespace hdps {
namespace {

constexpr size_t kSlotsMin = 16;
// Bounds of the fraction of used slots at which the index grows.
constexpr double kFillMin = 1.0 / 2, kFillMax = 2.0 / 3;
// Arrays up to this length are moved at once, in a few microseconds.
constexpr size_t kMoveAtOnceSlots = 1024;
// Slots moved for each key that may come, so that the move ends before the old array is 3/4 full.
constexpr size_t kMoveSlotsPerKey = 16;
constexpr size_t kReleaseSlots = kHugePageBytes / sizeof(RowSlot);

}  // namespace

RowIndex::RowIndex(uint64_t salt, uint32_t turn)
    : salt_(salt),
      fill_(static_cast<size_t>(256 * (kFillMax - (kFillMax - kFillMin) * SpreadPoint(turn)))),
      now_(NewArray(kSlotsMin)) {}

size_t RowIndex::PredictBytes(size_t keys) {
  const size_t slots = std::max(kSlotsMin, std::bit_ceil((keys * 3 + 1) / 2));
  const double filled = static_cast<double>(keys) / static_cast<double>(slots);
  const double grown = std::clamp((filled - kFillMin) / (kFillMax - kFillMin), 0.0, 1.0);
  return static_cast<size_t>(static_cast<double>(slots * sizeof(RowSlot)) * (1 + grown));
}

RowIndex::Array RowIndex::NewArray(size_t slots) {
  Array array;
  array.memory = PageMemory(slots * sizeof(RowSlot));
  array.memory.AskForHugePages(0, array.memory.size());
  array.begin = reinterpret_cast<RowSlot*>(array.memory.data());
  array.end = array.begin + slots;
  array.shift = 64 - std::countr_zero(slots / kLineSlots);
  return array;
}

void RowIndex::Prepare(size_t more) {
  if (growing()) {
    const bool crowded = (size_ + more) * 8 > old_.size() * 7;
    Move(crowded ? old_.size() : more * kMoveSlotsPerKey);
  }
  if (Fits(more)) return;
  if (growing()) Move(old_.size());
  StartGrowing(more);
  // After this the slots before the moved ones are empty, and new keys rarely probe around to them.
  const bool at_once = old_.size() <= kMoveAtOnceSlots || (size_ + more) * 8 > old_.size() * 7;
  Move(at_once ? old_.size() : kMoveAtOnceSlots);
}

void RowIndex::Shrink(size_t more) {
  size_t slots = kSlotsMin;
  while (!FitsInto(slots, more)) slots *= 2;
  if (slots >= now_.size()) return;
  if (growing()) Move(old_.size());
  const Array before = std::exchange(now_, NewArray(slots));
  for (const RowSlot* slot = before.begin; slot != before.end; ++slot) {
    if (!slot->used()) continue;
    RowSlot* place = now_.begin + now_.Home(MixBits(slot->key ^ salt_));
    while (place->used()) place = Next(place);
    *place = *slot;
  }
}

void RowIndex::StartGrowing(size_t more) {
  const size_t slots = SlotsFor(more);
  old_ = std::move(now_);
  now_ = NewArray(slots);
  old_mask_ = old_.size() - 1;
  const RowSlot* empty =
      std::find_if(old_.begin, old_.end, [](const RowSlot& s) { return !s.used(); });
  old_first_ = static_cast<size_t>(empty - old_.begin + 1) & old_mask_;
  moved_ = released_ = released_bytes_ = touched_ = 0;
}

void RowIndex::TouchAhead(size_t moved) {
  // Slots of the old array whose homes lie in one huge page of the new.
  const size_t piece = std::max<size_t>(1, kReleaseSlots * old_.size() / now_.size());
  while (touched_ < moved) {
    const size_t begin = (old_first_ + touched_) & old_mask_;
    const size_t page = begin / piece * kHugePageBytes;
    now_.memory.Touch(page, kHugePageBytes);
    touched_ += piece - begin % piece;
  }
}

void RowIndex::Move(size_t slots) {
  const size_t goal = std::min(moved_ + slots, old_.size());
  TouchAhead(goal);
  while (growing() && moved_ < goal) MoveOneRun();
  if (growing()) ReleaseMoved();
}

// Moves one run of used slots and the empty slot behind it. The run that wraps around the end comes
// last. It cannot reach slots that have not moved: each key that may make it a slot longer has
// emptied kMoveSlotsPerKey slots before it.
void RowIndex::MoveOneRun() {
  for (;; ++moved_) {
    RowSlot* const slot = old_.begin + ((old_first_ + moved_) & old_mask_);
    if (!slot->used()) break;
    const uint64_t hash = MixBits(slot->key ^ salt_);
    DCHECK_LE((old_.Home(hash) - old_first_) & old_mask_, moved_);
    RowSlot* place = now_.begin + now_.Home(hash);
    while (place->used()) place = Next(place);
    *place = *slot;
    *slot = RowSlot();
  }
  ++moved_;
  if (moved_ < old_.size()) return;
  // The last run was followed around the end, so nothing is left.
  old_ = Array();
  old_first_ = old_mask_ = released_bytes_ = 0;
  moved_ = 1;
}

void RowIndex::ReleaseMoved() {
  while (released_ + kReleaseSlots <= moved_) {
    const size_t begin = (old_first_ + released_) & old_mask_;
    released_ += kReleaseSlots;
    if (begin + kReleaseSlots > old_.size()) continue;
    const RowSlot* piece = old_.begin + begin;
    if (std::any_of(piece, piece + kReleaseSlots, [](const RowSlot& s) { return s.used(); }))
      continue;
    old_.memory.Release(begin * sizeof(RowSlot), kReleaseSlots * sizeof(RowSlot));
    released_bytes_ += kReleaseSlots * sizeof(RowSlot);
  }
}

void RowIndex::Erase(RowSlot* slot) {
  const bool in_old = slot >= old_.begin && slot < old_.end;
  const Array& array = in_old ? old_ : now_;
  const size_t mask = array.size() - 1;
  for (RowSlot* behind = Next(slot); behind->used(); behind = Next(behind)) {
    const size_t home = array.Home(MixBits(behind->key ^ salt_));
    const size_t at = static_cast<size_t>(behind - array.begin);
    const size_t hole = static_cast<size_t>(slot - array.begin);
    // The slot may move into the hole unless the hole lies before its home.
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    *slot = *behind;
    slot = behind;
  }
  *slot = RowSlot();
  --size_;
}

}  // namespace hdps
