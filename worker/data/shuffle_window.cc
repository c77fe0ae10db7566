// Lines in one slab that is packed anew when half of it is holes.
#include "worker/data/shuffle_window.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

constexpr size_t kSlabBytesMin = size_t{1} << 16;

}  // namespace

void ShuffleWindow::Restart(uint64_t seed) {
  random_ = Random(seed);
  lines_.clear();
  used_bytes_ = live_bytes_ = 0;
}

void ShuffleWindow::Put(const Line& line) {
  const size_t size = line.text.size();
  if (used_bytes_ + size > bytes_.size()) MoveTogether(size);
  if (size > 0) std::memcpy(bytes_.data() + used_bytes_, line.text.data(), size);
  lines_.push_back({line.place.number, used_bytes_, static_cast<uint32_t>(size), line.place.file});
  used_bytes_ += size;
  live_bytes_ += size;
}

Line ShuffleWindow::TakeAny() {
  DCHECK(!lines_.empty());
  const size_t chosen = random_.Below(lines_.size());
  const Held held = lines_[chosen];
  lines_[chosen] = lines_.back();
  lines_.pop_back();
  live_bytes_ -= held.size;
  return {{bytes_.data() + held.begin, held.size}, {held.file, held.number}};
}

void ShuffleWindow::MoveTogether(size_t room) {
  std::vector<char> together(std::max(kSlabBytesMin, 2 * (live_bytes_ + room)));
  size_t used = 0;
  for (Held& held : lines_) {
    if (held.size > 0) std::memcpy(together.data() + used, bytes_.data() + held.begin, held.size);
    held.begin = used;
    used += held.size;
  }
  bytes_ = std::move(together);
  used_bytes_ = used;
}

}  // namespace hdps
