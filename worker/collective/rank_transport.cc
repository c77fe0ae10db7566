// Parts that transports share: spreading by messages, and arithmetic on host memory.
#include "worker/collective/rank_transport.h"

#include <algorithm>
#include <cstring>

#include "common/platform/memory_full.h"
#include "kernels/host/half_floats.h"
#include "worker/collective/device_values.h"

namespace hdps {
namespace {

// Copies between the host and a device.
Status CopyDeviceBytes(void* to, const void* from, size_t size) {
  const int error = CopyToOrFromDevice(to, from, size);
  if (error == 0) return Status();
  return Status(Code::kUnavailable,
                std::string("a copy between host and device memory: ") + DeviceErrorText(error));
}

using Parts = std::span<const std::byte* const>;

template <typename T, typename Op>
void CombineValues(Parts parts, size_t count, std::byte* to, const Op& op) {
  T* const result = reinterpret_cast<T*>(to);
  if (to != parts[0]) std::memcpy(to, parts[0], count * sizeof(T));
  for (const std::byte* const bytes : parts.subspan(1)) {
    const T* const part = reinterpret_cast<const T*>(bytes);
    for (size_t i = 0; i < count; ++i) result[i] = op(result[i], part[i]);
  }
}

// Sums values of 16 bits in fp32, one block at a time.
void SumHalves(DType format, Parts parts, size_t count, std::byte* result) {
  constexpr size_t kBlock = 1024;
  float sums[kBlock], part[kBlock];
  const VectorWidth width = WidestVectors();
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t block = std::min(kBlock, count - begin), at = begin * sizeof(uint16_t);
    WidenFloats(width, format, parts[0] + at, {sums, block});
    for (const std::byte* const bytes : parts.subspan(1)) {
      WidenFloats(width, format, bytes + at, {part, block});
      for (size_t i = 0; i < block; ++i) sums[i] += part[i];
    }
    NarrowFloats(width, format, {sums, block}, result + at);
  }
}

}  // namespace

Status RankTransport::Spread(std::span<const uint32_t> members, std::span<const RankMove> parts) {
  std::vector<RankMove> sends, receives;
  for (const RankMove& part : parts) {
    if (part.peer != rank()) {
      receives.push_back(part);
      continue;
    }
    for (const uint32_t member : members) {
      if (member != rank()) sends.push_back({member, part.data, part.size});
    }
  }
  return Exchange(sends, receives);
}

Result<std::byte*> HostTransport::Reserve(Scratch scratch, size_t bytes) {
  const MemoryFor sums("sums over the workers (parallel.dense_exchange, model.hidden)");
  std::vector<uint64_t>& memory = scratch_[static_cast<size_t>(scratch)];
  if (memory.size() * sizeof(uint64_t) < bytes) memory.resize(bytes / sizeof(uint64_t) + 1);
  return reinterpret_cast<std::byte*>(memory.data());
}

Status HostTransport::CopyIn(std::byte* to, const void* from, MemorySpace from_space, size_t size) {
  if (size == 0) return Status();
  if (from_space == MemorySpace::kDevice) return CopyDeviceBytes(to, from, size);
  std::memcpy(to, from, size);
  return Status();
}

Status HostTransport::CopyOut(void* to, MemorySpace to_space, const std::byte* from, size_t size) {
  if (size == 0) return Status();
  if (to_space == MemorySpace::kDevice) return CopyDeviceBytes(to, from, size);
  std::memcpy(to, from, size);
  return Status();
}

Status HostTransport::Combine(Reduction reduction, const std::byte* parts, size_t stride,
                              uint32_t ranks, size_t count, std::byte* result) {
  std::vector<const std::byte*> each;
  for (uint32_t r = 0; r < ranks; ++r) each.push_back(parts + stride * r);
  CombineOnHost(reduction, each, count, result);
  return Status();
}

void CombineOnHost(Reduction reduction, std::span<const std::byte* const> parts, size_t count,
                   std::byte* result) {
  if (count == 0) return;
  const auto sum = [](auto a, auto b) { return a + b; };
  const auto either = [](uint64_t a, uint64_t b) { return a | b; };
  switch (reduction) {
    case Reduction::kSumFloat:
      return CombineValues<float>(parts, count, result, sum);
    case Reduction::kSumUint32:
      return CombineValues<uint32_t>(parts, count, result, sum);
    case Reduction::kSumUint64:
      return CombineValues<uint64_t>(parts, count, result, sum);
    case Reduction::kOrUint64:
      return CombineValues<uint64_t>(parts, count, result, either);
    case Reduction::kSumFp16:
      return SumHalves(DType::kFp16, parts, count, result);
    case Reduction::kSumBf16:
      return SumHalves(DType::kBf16, parts, count, result);
  }
}

}  // namespace hdps
