// Layers of a filter that grows.
#include "embedding/key_filter.h"

#include <algorithm>

namespace hdps {
namespace {

constexpr size_t kFirstKeys = 256;
// With six bits set of them, one absent key in a hundred seems to be there, of each layer that is
// full.
constexpr size_t kBitsPerKey = 12;

}  // namespace

void KeyFilter::Add(Key key) {
  if (MayHave(key)) return;
  if (layers_.empty() || layers_.back().keys == layers_.back().keys_max) {
    Layer layer;
    layer.keys_max = layers_.empty() ? kFirstKeys : 2 * layers_.back().keys_max;
    layer.lines = layer.keys_max * kBitsPerKey / (8 * kLineBytes);
    layer.memory = PageMemory(layer.lines * kLineBytes);
    bytes_ += layer.memory.size();
    layers_.push_back(std::move(layer));
  }
  layers_.back().Set(MixBits(key ^ salt_));
  ++layers_.back().keys;
  ++size_;
}

void KeyFilter::Clear() {
  layers_.clear();
  size_ = bytes_ = 0;
}

}  // namespace hdps
