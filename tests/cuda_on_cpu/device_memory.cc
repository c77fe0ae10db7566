// Keeps the memory of all devices in one range of addresses. It is protected between pieces of
// work, so that the host faults when it reads a device's address. Behind each allocation are
// redzones: a write there is detected, and a read if the address sanitizer is on.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <set>

#include "tests/cuda_on_cpu/engine.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HDPS_POISON(data, size) __asan_poison_memory_region(data, size)
#define HDPS_UNPOISON(data, size) __asan_unpoison_memory_region(data, size)
#else
#define HDPS_POISON(data, size) (static_cast<void>(data), static_cast<void>(size))
#define HDPS_UNPOISON(data, size) (static_cast<void>(data), static_cast<void>(size))
#endif

namespace cuda_on_cpu {
namespace {

constexpr size_t kReserved = size_t{1} << 38;
constexpr size_t kAlignment = 256, kRedzone = 256;
constexpr unsigned char kUntouched = 0xa5, kFresh = 0xff;  // Fresh floats are NaN.

size_t RoundedUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Allocation {
  size_t bytes = 0;
  int device = 0;
};

struct Memory {
  unsigned char* base = nullptr;
  size_t used = 0;  // Bytes from the base that were allocated once.
  // Bytes from the base whose page protection follows the work.
  size_t reachable = 0;
  int at_work = 0;
  std::map<unsigned char*, Allocation> allocations;
  std::multimap<size_t, unsigned char*> spare;  // By size with redzone.
  std::map<int, size_t> in_use;                 // [devices]
  std::map<unsigned char*, size_t> pinned;
};

Memory& TheMemory();

void OnBadAccess(int, siginfo_t* info, void*) {
  const char device[] =
      "cuda_on_cpu: the host has touched a device's memory, which it can only copy\n";
  const char outside[] = "cuda_on_cpu: a kernel has gone outside of the device's memory\n";
  const char other[] = "cuda_on_cpu: bad address\n";
  const bool of_device = OnDevice(info->si_addr), at_work = TheMemory().at_work > 0;
  const ssize_t written = at_work     ? write(2, outside, sizeof(outside) - 1)
                          : of_device ? write(2, device, sizeof(device) - 1)
                                      : write(2, other, sizeof(other) - 1);
  static_cast<void>(written);
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

Memory& TheMemory() {
  static Memory* const memory = [] {
    auto* const made = new Memory();
    void* const base =
        mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) Fail("no addresses left for the devices' memory");
    made->base = static_cast<unsigned char*>(base);
    struct sigaction action = {};
    action.sa_sigaction = OnBadAccess;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    return made;
  }();
  return *memory;
}

void Protect(Memory& memory, int protection) {
  if (memory.reachable > 0) mprotect(memory.base, memory.reachable, protection);
}

const unsigned char* Bytes(const void* data) { return static_cast<const unsigned char*>(data); }

// Returns the allocation that contains the address, or null.
const std::pair<unsigned char* const, Allocation>* AllocationOf(const void* data) {
  Memory& memory = TheMemory();
  auto after = memory.allocations.upper_bound(const_cast<unsigned char*>(Bytes(data)));
  if (after == memory.allocations.begin()) return nullptr;
  --after;
  return Bytes(data) < after->first + RoundedUp(after->second.bytes) ? &*after : nullptr;
}

std::string Redzone(const unsigned char* data, const Allocation& allocation) {
  for (size_t i = 0; i < kRedzone; ++i) {
    if (data[allocation.bytes + i] == kUntouched) continue;
    return "a kernel has written " + std::to_string(i) + " bytes behind an allocation of " +
           std::to_string(allocation.bytes);
  }
  return "";
}

}  // namespace

bool OnDevice(const void* data) {
  const Memory& memory = TheMemory();
  return Bytes(data) >= memory.base && Bytes(data) < memory.base + kReserved;
}

bool Pinned(const void* data) {
  const Memory& memory = TheMemory();
  auto after = memory.pinned.upper_bound(const_cast<unsigned char*>(Bytes(data)));
  if (after == memory.pinned.begin()) return false;
  --after;
  return Bytes(data) < after->first + after->second;
}

DeviceAtWork::DeviceAtWork() {
  Memory& memory = TheMemory();
  if (memory.at_work++ == 0) Protect(memory, PROT_READ | PROT_WRITE);
}
DeviceAtWork::~DeviceAtWork() {
  Memory& memory = TheMemory();
  if (--memory.at_work == 0) Protect(memory, PROT_NONE);
}

void CheckRedzones() {
#if !defined(__SANITIZE_ADDRESS__)  // The address sanitizer checks this itself.
  for (const auto& [data, allocation] : TheMemory().allocations) {
    const std::string wrong = Redzone(data, allocation);
    if (!wrong.empty()) Fail(wrong);
  }
#endif
}

void CheckArgument(const void* argument, size_t bytes) {
  const auto lock = Engine::Get().Lock();
  for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
    uintptr_t word;
    std::memcpy(&word, Bytes(argument) + at, sizeof(word));
    const auto* const data = reinterpret_cast<const unsigned char*>(word);
    if (OnDevice(data)) {
      const auto* const at_end = AllocationOf(data) == nullptr ? AllocationOf(data - 1) : nullptr;
      const auto* const found = at_end == nullptr ? AllocationOf(data) : at_end;
      if (found != nullptr && found->second.device != CurrentDevice()) {
        Fail("an argument of a kernel points to the memory of another device");
      }
      if (found == nullptr) {
        Fail("byte " + std::to_string(at) + " of an argument of " + std::to_string(bytes) +
             " bytes of a kernel points to device memory that is not allocated");
      }
      continue;
    }
    // Too low for heap, stack or program, as two adjacent small numbers are; or too high.
    if (word < (uintptr_t{1} << 45) || word >= (uintptr_t{1} << 47)) continue;
    unsigned char there;
    void* const page = reinterpret_cast<void*>(word & ~uintptr_t{4095});
    if (mincore(page, 1, &there) == 0) {
      Fail("byte " + std::to_string(at) + " of an argument of " + std::to_string(bytes) +
           " bytes of a kernel points to the host's memory");
    }
  }
}

cudaError_t Allocate(void** data, size_t bytes) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  Engine& engine = Engine::Get();
  const auto lock = engine.Lock();
  *data = nullptr;
  if (bytes == 0) return cudaSuccess;
  Memory& memory = TheMemory();
  size_t& in_use = memory.in_use[CurrentDevice()];
  if (in_use + bytes > engine.device_bytes) return cudaErrorMemoryAllocation;
  const size_t whole = RoundedUp(bytes) + kRedzone;
  unsigned char* place = nullptr;
  if (const auto spare = memory.spare.find(whole); spare != memory.spare.end()) {
    place = spare->second;
    memory.spare.erase(spare);
  } else {
    place = memory.base + memory.used;
    memory.used += whole;
    if (memory.used > kReserved) Fail("the devices' addresses are used up");
  }
  // Includes the rest of the last page, so that no page has two protections.
  memory.reachable = (memory.used + 4095) / 4096 * 4096;
  {
    const DeviceAtWork at_work;
    Protect(memory, PROT_READ | PROT_WRITE);
    HDPS_UNPOISON(place, whole);
    std::memset(place, kFresh, bytes);
    std::memset(place + bytes, kUntouched, whole - bytes);
    HDPS_POISON(place + bytes, whole - bytes);
  }
  memory.allocations[place] = {bytes, CurrentDevice()};
  in_use += bytes;
  engine.counters.bytes_in_use += bytes;
  engine.counters.bytes_peak = std::max(engine.counters.bytes_peak, engine.counters.bytes_in_use);
  *data = place;
  return cudaSuccess;
}

cudaError_t AllocatePinned(void** data, size_t bytes) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  const auto lock = Engine::Get().Lock();
  auto* const made = new unsigned char[std::max<size_t>(bytes, 1)];
  TheMemory().pinned[made] = bytes;
  *data = made;
  return cudaSuccess;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  Engine& engine = Engine::Get();
  auto lock = engine.Lock();
  engine.WorkOff(lock, false);  // cudaFree waits for the whole device.
  Memory& memory = TheMemory();
  const auto found = memory.allocations.find(static_cast<unsigned char*>(data));
  if (found == memory.allocations.end()) Fail("cudaFree of what cudaMalloc has not given");
  const Allocation allocation = found->second;
  memory.in_use[allocation.device] -= allocation.bytes;
  engine.counters.bytes_in_use -= allocation.bytes;
  memory.spare.emplace(RoundedUp(allocation.bytes) + kRedzone, found->first);
  HDPS_POISON(found->first, allocation.bytes);
  memory.allocations.erase(found);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  const auto lock = Engine::Get().Lock();
  if (TheMemory().pinned.erase(static_cast<unsigned char*>(data)) == 0) {
    Fail("cudaFreeHost of what cudaMallocHost has not given");
  }
  delete[] static_cast<unsigned char*>(data);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const auto lock = Engine::Get().Lock();
  *total = Engine::Get().device_bytes;
  *free = *total - TheMemory().in_use[CurrentDevice()];
  return cudaSuccess;
}
