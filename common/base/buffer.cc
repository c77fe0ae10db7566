// Allocation of shared byte ranges.
#include "common/base/buffer.h"

#include <cstring>
#include <new>

namespace hdps {

namespace {
constexpr std::align_val_t kAlignment{64};
}  // namespace

Buffer Buffer::Allocate(size_t size, std::span<std::byte>* bytes) {
  auto* data = static_cast<std::byte*>(::operator new(size > 0 ? size : 1, kAlignment));
  std::shared_ptr<const void> owner(
      data, [](const void* p) { ::operator delete(const_cast<void*>(p), kAlignment); });
  *bytes = {data, size};
  return Buffer(std::move(owner), data, size);
}

Buffer Buffer::CopyOf(std::span<const std::byte> bytes) {
  std::span<std::byte> out;
  Buffer buffer = Allocate(bytes.size(), &out);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return buffer;
}

}  // namespace hdps
