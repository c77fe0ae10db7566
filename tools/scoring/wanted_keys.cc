// Removes repeats whenever the keys have become twice as many.
#include "tools/scoring/wanted_keys.h"

#include <algorithm>

namespace hdps {
namespace {

void RemoveRepeats(std::vector<Key>* keys) {
  std::ranges::sort(*keys);
  const auto repeats = std::ranges::unique(*keys);
  keys->erase(repeats.begin(), repeats.end());
}

}  // namespace

void WantedKeys::Want(TableId table, std::span<const Key> keys) {
  Table& wanted = tables_[table.value];
  wanted.keys.insert(wanted.keys.end(), keys.begin(), keys.end());
  if (wanted.keys.size() <= wanted.sorted_max) return;
  RemoveRepeats(&wanted.keys);
  wanted.sorted_max = 2 * wanted.keys.size() + kUnsortedMax;
}

void WantedKeys::Seal() {
  for (Table& table : tables_) {
    RemoveRepeats(&table.keys);
    table.keys.shrink_to_fit();
  }
}

}  // namespace hdps
