// Finds, stages and publishes rows.
#include "embedding/flat_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "embedding/memory/weight_format.h"

namespace hdps {
namespace {

constexpr uint64_t kSlotsMin = 16;
constexpr size_t kSlotsCopied = 1 << 20;  // Between two times that memory is given back.
constexpr size_t kChangesAhead = 16;      // How many changes before their use slots are prefetched.

// Memory that will be used as a whole, in no order: huge pages save most misses of the TLB.
PageMemory HugePages(size_t bytes) {
  PageMemory memory(bytes);
  memory.AskForHugePages(0, bytes);
  return memory;
}

}  // namespace

size_t FlatRows::RowBytes(WeightFormat format, uint32_t dim) {
  return sizeof(Key) + WeightBytes(format, dim);
}

uint64_t FlatRows::PredictBytes(WeightFormat format, uint32_t dim, uint64_t rows) {
  return rows * RowBytes(format, dim) + SlotsFor(rows) * sizeof(Slot);
}

FlatRows::FlatRows(WeightFormat format, uint32_t dim)
    : format_(format), dim_(dim), row_bytes_(RowBytes(format, dim)), now_(NewIndex(0)) {}

Result<std::unique_ptr<FlatRows>> FlatRows::Over(WeightFormat format, uint32_t dim,
                                                 FlatArrays arrays) {
  auto over = std::make_unique<FlatRows>(format, dim);
  const size_t places = arrays.rows.size() / over->row_bytes_;
  if (arrays.rows.size() % over->row_bytes_ != 0 || places > kPlacesMax) {
    return Status(Code::kCorruption, std::to_string(arrays.rows.size()) +
                                         " bytes are not rows of " +
                                         std::to_string(over->row_bytes_));
  }
  Index& index = over->now_;
  index.memory = HugePages(arrays.slots.size_bytes());
  index.slots = {reinterpret_cast<Slot*>(index.memory.data()), arrays.slots.size()};
  for (size_t begin = 0; begin < index.slots.size(); begin += kSlotsCopied) {
    const size_t count = std::min(kSlotsCopied, index.slots.size() - begin);
    std::ranges::copy(arrays.slots.subspan(begin, count), index.slots.begin() + begin);
    if (arrays.drop) arrays.drop();
  }
  for (const Slot& slot : index.slots) {
    index.filled += slot != 0 ? 1 : 0;
    over->num_rows_ += HasPlace(slot) ? 1 : 0;
    if (HasPlace(slot) && PlaceOf(slot) >= places) {
      return Status(Code::kCorruption, "a slot of the index has place " +
                                           std::to_string(PlaceOf(slot)) + " of " +
                                           std::to_string(places));
    }
  }
  if (index.filled >= index.slots.size()) {
    return Status(Code::kCorruption,
                  "the index of " + std::to_string(index.slots.size()) + " slots has no empty one");
  }
  over->base_ = arrays.rows.data();
  over->base_places_ = over->base_used_ = places;
  over->keeps_base_ = false;
  over->keeps_ = std::move(arrays.keeps);
  return over;
}

uint64_t FlatRows::SlotsFor(uint64_t rows) { return std::max(kSlotsMin, rows + rows * 2 / 3); }

void FlatRows::AddSlot(std::span<Slot> slots, Key key, uint32_t place) {
  const Index index{.slots = slots};
  const uint64_t hash = Hash(key);
  size_t at = index.Home(hash);
  while (slots[at] != 0) at = index.Next(at);
  slots[at] = SlotOf(hash, place);
}

FlatRows::Index FlatRows::NewIndex(uint64_t rows) {
  const uint64_t slots = SlotsFor(rows);
  Index index;
  index.memory = HugePages(slots * sizeof(Slot));
  index.slots = {reinterpret_cast<Slot*>(index.memory.data()), slots};
  return index;
}

uint64_t FlatRows::bytes() const {
  const size_t slots = now_.slots.size() + (next_ ? next_->slots.size() : 0);
  return (base_used_ + past_base_) * row_bytes_ + slots * sizeof(Slot);
}

Key FlatRows::KeyAt(uint32_t place) const {
  Key key;
  std::memcpy(&key, RowAt(place), sizeof(key));
  return key;
}

size_t FlatRows::SeekFrom(const Index& index, Key key, uint64_t hash, size_t at) const {
  for (;; at = index.Next(at)) {
    const Slot slot = Load(index.slots[at]);
    if (slot == 0) return at;
    const bool alike = HasPlace(slot) && (slot & ~kPlaceMask) == Tag(hash);
    if (alike && KeyAt(PlaceOf(slot)) == key) return at;
  }
}

std::optional<uint32_t> FlatRows::Find(Key key) const {
  const Slot slot = Load(now_.slots[Seek(now_, key, Hash(key))]);
  return HasPlace(slot) ? std::optional(PlaceOf(slot)) : std::nullopt;
}

void FlatRows::ReadWeightsOf(const std::byte* row, std::span<float> weights) const {
  ReadWeights(format_, row + sizeof(Key), weights);
}

// Slots of staged removals are sought again, since their keys still have their places.
void FlatRows::Grow(uint64_t more) {
  Index index = NewIndex(num_rows_ + more);
  const auto seek = [&](Slot slot) {
    const Key key = KeyAt(PlaceOf(slot));
    return Seek(index, key, Hash(key));
  };
  for (const Slot& slot : now_.slots) {
    if (!HasPlace(slot)) continue;
    index.slots[seek(slot)] = slot;
    ++index.filled;
  }
  for (Change& change : staged_) {
    CHECK_EQ(change.slot, kNoRow) << "Begin() comes before the rows";
    change.at = seek(now_.slots[change.at]);
  }
  next_ = std::move(index);
}

Status FlatRows::TooMany(uint64_t rows) {
  return {Code::kResourceExhausted, "a shard of a table holds " + std::to_string(rows) +
                                        " rows, and at most " + std::to_string(kPlacesMax) +
                                        " can be there; give the job more cluster.shards"};
}

Status FlatRows::Begin(uint64_t rows) {
  if (rows > kPlacesMax) return TooMany(rows);
  if (base_places_ == 0 && past_base_ == 0) {
    base_memory_ = HugePages(rows * row_bytes_);
    base_ = base_memory_.data();
    base_places_ = rows;
  }
  const uint64_t filled = writing().filled + rows;
  if (filled * 4 > writing().slots.size() * 3) Grow(rows);
  return {};
}

Result<uint32_t> FlatRows::TakePlace() {
  if (!free_.empty()) {
    const uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  if (base_used_ < base_places_) return static_cast<uint32_t>(base_used_++);
  const uint64_t place = base_places_ + past_base_;
  if (place >= kPlacesMax) {
    return Status(Code::kResourceExhausted,
                  "a shard of a table has no place left for a row beside " +
                      std::to_string(num_rows_) + "; give the job more cluster.shards");
  }
  const size_t slab = static_cast<size_t>(std::bit_width(past_base_ / kFirstSlabPlaces + 1)) - 1;
  if (slabs_[slab].empty()) {
    slabs_[slab] = PageMemory((size_t{kFirstSlabPlaces} << slab) * row_bytes_);
  }
  ++past_base_;
  return static_cast<uint32_t>(place);
}

Status FlatRows::Store(std::span<const Key> keys, std::span<const float> rows) {
  const size_t row_floats = keys.empty() ? 0 : rows.size() / keys.size();
  Index& index = writing();
  for (size_t k = 0; k < keys.size(); ++k) {
    if (k + kChangesAhead < keys.size()) {
      __builtin_prefetch(&index.slots[index.Home(Hash(keys[k + kChangesAhead]))]);
    }
    HDPS_ASSIGN_OR_RETURN(const uint32_t place, TakePlace());
    std::byte* const row =
        place < base_places_ ? base_memory_.data() + place * row_bytes_ : RowInSlab(place);
    std::memcpy(row, &keys[k], sizeof(Key));
    WriteWeights(format_, rows.subspan(k * row_floats, dim_), row + sizeof(Key));
    const uint64_t hash = Hash(keys[k]);
    const size_t at = Seek(index, keys[k], hash);
    if (!HasPlace(index.slots[at])) {
      Save(&index.slots[at], kNoRow);
      ++index.filled;
    }
    staged_.push_back({at, SlotOf(hash, place)});
  }
  CHECK_LT(index.filled, index.slots.size()) << "Begin() announces the rows";
  ReserveFree();
  return {};
}

void FlatRows::Erase(std::span<const Key> keys) {
  Index& index = writing();
  for (const Key key : keys) {
    const size_t at = Seek(index, key, Hash(key));
    if (HasPlace(index.slots[at])) staged_.push_back({at, kNoRow});
  }
  ReserveFree();
}

// Each staged change may free a place, and Publish() is not to wait for memory.
void FlatRows::ReserveFree() {
  const size_t wanted = free_.size() + staged_.size();
  if (free_.capacity() < wanted) free_.reserve(std::max(wanted, 2 * free_.capacity()));
}

void FlatRows::Publish() {
  Index& index = writing();
  for (size_t i = 0; i < staged_.size(); ++i) {
    if (i + kChangesAhead < staged_.size()) {
      __builtin_prefetch(&index.slots[staged_[i + kChangesAhead].at], 1);
    }
    Slot& slot = index.slots[staged_[i].at];
    const Slot before = std::exchange(slot, staged_[i].slot);
    if (HasPlace(before)) {
      Free(PlaceOf(before));
      --num_rows_;
    }
    if (HasPlace(slot)) ++num_rows_;
  }
  staged_.clear();
  if (!next_) return;
  retired_ = std::exchange(now_, *std::move(next_));
  next_.reset();
}

void FlatRows::Discard() {
  Index& index = writing();
  for (const Change& change : staged_) {
    if (change.slot == kNoRow) continue;
    free_.push_back(PlaceOf(change.slot));
    if (HasPlace(index.slots[change.at])) continue;
    Save(&index.slots[change.at], 0);  // It was empty, and nobody else's row is behind it.
    --index.filled;
  }
  staged_.clear();
  next_.reset();
}

// A removal has the key of the row in its slot.
FlatRows::Staged::Staged(const FlatRows& rows) : rows_(rows) {
  const std::span<const Slot> slots = rows.next_ ? rows.next_->slots : rows.now_.slots;
  for (const Change& change : rows.staged_) {
    const Slot with_key = HasPlace(change.slot) ? change.slot : slots[change.at];
    changes_.emplace_back(rows.KeyAt(PlaceOf(with_key)), change.slot);
  }
  std::ranges::stable_sort(changes_, {}, &std::pair<Key, Slot>::first);
}

const std::byte* FlatRows::Staged::Find(Key key) const {
  // The last change of a key counts: its row may be removed and stored again.
  const auto behind = std::ranges::upper_bound(changes_, key, {}, &std::pair<Key, Slot>::first);
  if (behind != changes_.begin() && std::prev(behind)->first == key) {
    const Slot slot = std::prev(behind)->second;
    return HasPlace(slot) ? rows_.RowAt(PlaceOf(slot)) : nullptr;
  }
  const std::optional<uint32_t> place = rows_.Find(key);
  return place ? rows_.RowAt(*place) : nullptr;
}

Status FlatRows::VisitRows(const Visit& visit) const {
  constexpr size_t kBlockRows = 4096;
  std::vector<uint32_t> places;
  places.reserve(num_rows_);
  for (const Slot& slot : now_.slots) {
    if (HasPlace(slot)) places.push_back(PlaceOf(slot));
  }
  std::ranges::sort(places);
  std::vector<Key> keys;
  std::vector<float> rows;
  for (size_t begin = 0; begin < places.size(); begin += kBlockRows) {
    const size_t count = std::min(kBlockRows, places.size() - begin);
    keys.clear();
    rows.resize(count * dim_);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t place = places[begin + i];
      keys.push_back(KeyAt(place));
      ReadWeights(format_, RowAt(place) + sizeof(Key), std::span(rows).subspan(i * dim_, dim_));
    }
    HDPS_RETURN_IF_ERROR(visit(keys, rows));
  }
  return {};
}

}  // namespace hdps
