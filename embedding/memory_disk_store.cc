// A disk tier without a disk: for tests and the simulator.
#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/thread_annotations.h"
#include "embedding/disk_store.h"

namespace hdps {
namespace {

class MemoryDiskStore : public DiskStore {
 public:
  Status Put(const DiskSpace& space, std::span<const Key> keys,
             std::span<const std::byte> rows) override {
    CHECK_EQ(rows.size(), keys.size() * space.row_bytes);
    MutexLock lock(mutex_);
    Rows& own = spaces_[Number(space)];
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto row = rows.subspan(k * space.row_bytes, space.row_bytes);
      std::vector<std::byte>& place = own[keys[k]];
      bytes_ += space.row_bytes - place.size();
      place.assign(row.begin(), row.end());
    }
    return {};
  }
  Status Get(const DiskSpace& space, std::span<const Key> keys, std::span<std::byte> rows,
             std::span<uint8_t> found) override {
    MutexLock lock(mutex_);
    const Rows& own = spaces_[Number(space)];
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto row = own.find(keys[k]);
      found[k] = row == own.end() ? 0 : 1;
      if (found[k] == 0) continue;
      std::ranges::copy(row->second, rows.begin() + static_cast<ptrdiff_t>(k * space.row_bytes));
    }
    return {};
  }
  Status Erase(const DiskSpace& space, std::span<const Key> keys) override {
    MutexLock lock(mutex_);
    Rows& own = spaces_[Number(space)];
    for (const Key key : keys) bytes_ -= own.erase(key) * space.row_bytes;
    return {};
  }
  Status EraseAll(const DiskSpace& space) override {
    MutexLock lock(mutex_);
    Rows& own = spaces_[Number(space)];
    bytes_ -= own.size() * space.row_bytes;
    own.clear();
    return {};
  }
  Status Scan(const DiskSpace& space, const Visit& visit) override {
    MutexLock lock(mutex_);
    for (const auto& [key, row] : spaces_[Number(space)]) {
      if (!visit(key, row)) break;
    }
    return {};
  }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t disk_bytes() const override {
    MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  using Rows = std::map<Key, std::vector<std::byte>>;
  static uint32_t Number(const DiskSpace& space) {
    return space.shard.value << 16 | space.table.value;
  }

  mutable Mutex mutex_;
  std::map<uint32_t, Rows> spaces_ HDPS_GUARDED_BY(mutex_);
  uint64_t bytes_ HDPS_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<DiskStore> NewMemoryDiskStore() { return std::make_unique<MemoryDiskStore>(); }

}  // namespace hdps
