// A disk tier in memory.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "embedding/disk/disk_store.h"

namespace hdps {

class MemoryDiskStore : public DiskStore {
 public:
  Status Put(const DiskSpace& space, std::span<const DiskBlock> blocks) override {
    MutexLock lock(mutex_);
    for (const DiskBlock& block : blocks) {
      spaces_[Number(space)][block.number].assign(block.bytes.begin(), block.bytes.end());
      bytes_ += block.bytes.size();
    }
    return {};
  }
  Status Get(const DiskSpace& space, std::span<const uint64_t> numbers,
             const Visit& visit) override {
    for (size_t k = 0; k < numbers.size(); ++k) {
      std::vector<std::byte> bytes;
      {
        MutexLock lock(mutex_);
        const Blocks& own = spaces_[Number(space)];
        const auto block = own.find(numbers[k]);
        if (block == own.end()) return Damaged("no block " + std::to_string(numbers[k]));
        bytes = block->second;
      }
      HDPS_RETURN_IF_ERROR(visit(k, bytes));
    }
    return {};
  }
  Status Erase(const DiskSpace& space, std::span<const uint64_t> numbers) override {
    MutexLock lock(mutex_);
    Blocks& own = spaces_[Number(space)];
    for (const uint64_t number : numbers) {
      const auto block = own.find(number);
      if (block == own.end()) continue;
      bytes_ -= block->second.size();
      own.erase(block);
    }
    return {};
  }
  Status EraseAll(const DiskSpace& space) override {
    MutexLock lock(mutex_);
    for (const auto& [number, block] : spaces_[Number(space)]) bytes_ -= block.size();
    spaces_.erase(Number(space));
    return {};
  }
  Status Damaged(const std::string& what) const override {
    return {Code::kIoError, "spilled rows: " + what};
  }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t disk_bytes() const override {
    MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  using Blocks = std::map<uint64_t, std::vector<std::byte>>;
  using SpaceNumber = std::pair<uint32_t, uint32_t>;
  static SpaceNumber Number(const DiskSpace& space) {
    return {space.shard.value, space.table.value};
  }

  mutable Mutex mutex_;
  std::map<SpaceNumber, Blocks> spaces_ HDPS_GUARDED_BY(mutex_);
  uint64_t bytes_ HDPS_GUARDED_BY(mutex_) = 0;
};

inline std::unique_ptr<DiskStore> NewMemoryDiskStore() {
  return std::make_unique<MemoryDiskStore>();
}

}  // namespace hdps
