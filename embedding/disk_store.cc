// Rows in RocksDB: sorted batches in, one lookup of many keys out, no log, no cache of its own.
#include "embedding/disk_store.h"

#include <glog/logging.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace hdps {
namespace {

constexpr size_t kGetKeys = 1024;         // Looked up together.
constexpr size_t kPutBytes = 1 << 20;     // Written together, about.
constexpr size_t kScanBytes = 128 << 10;  // Read ahead of a scan in each of several files.
constexpr int kFilterBitsPerKey = 10;     // One of a hundred absent keys costs a read.
constexpr uint64_t kWriteBufferMin = 1 << 20;
constexpr uint64_t kWriteBufferMax = 64 << 20;
constexpr uint64_t kFileBytes = 64 << 20;

// (shard, table, key), big-endian: the order of bytes is that of the numbers.
constexpr size_t kPrefixBytes = 4;
using DiskKey = std::array<char, kPrefixBytes + sizeof(Key)>;

void SetPrefix(const DiskSpace& space, DiskKey* key) {
  const uint32_t prefix = space.shard.value << 16 | space.table.value;
  for (size_t i = 0; i < kPrefixBytes; ++i) (*key)[i] = static_cast<char>(prefix >> (24 - 8 * i));
}
void SetKey(Key value, DiskKey* key) {
  for (size_t i = 0; i < sizeof(Key); ++i) {
    (*key)[kPrefixBytes + i] = static_cast<char>(value >> (56 - 8 * i));
  }
}
Key KeyOf(const rocksdb::Slice& key) {
  Key value = 0;
  for (size_t i = kPrefixBytes; i < key.size(); ++i) {
    value = value << 8 | static_cast<unsigned char>(key[i]);
  }
  return value;
}
rocksdb::Slice AsSlice(const DiskKey& key) { return {key.data(), key.size()}; }
rocksdb::Slice AsSlice(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where memory goes: the buffers of rows on their way to disk (bounded by `memory_bytes`), and for
// every file its filter and index. Blocks of rows are the page cache's, which belongs to the
// machine: a cache of our own would hold them a second time, and rows that are read go to the
// memory tier anyway.
rocksdb::Options OptionsFor(const DiskStoreOptions& options) {
  rocksdb::Options rocks;
  rocks.create_if_missing = true;
  rocks.write_buffer_size = std::clamp(options.memory_bytes / 3, kWriteBufferMin, kWriteBufferMax);
  rocks.max_write_buffer_number = 3;
  rocks.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(
      std::max<uint64_t>(options.memory_bytes, 4 * kWriteBufferMin), nullptr,
      /*allow_stall=*/true);
  rocks.max_background_jobs = 2;
  rocks.compression = rocksdb::kNoCompression;  // Weights are noise: it would only cost time.
  rocks.target_file_size_base = kFileBytes;
  rocks.compaction_style = rocksdb::kCompactionStyleUniversal;
  rocks.level0_file_num_compaction_trigger = 12;
  rocks.level0_slowdown_writes_trigger = 40;
  rocks.level0_stop_writes_trigger = 60;
  rocks.compaction_options_universal.size_ratio = 30;
  rocks.optimize_filters_for_hits = true;
  rocks.max_open_files = -1;
  rocks.stats_dump_period_sec = 0;
  rocks.stats_persist_period_sec = 0;
  rocks.keep_log_file_num = 1;
  rocks.info_log_level = rocksdb::WARN_LEVEL;
  rocks.writable_file_max_buffer_size = 256 << 10;
  rocks.paranoid_checks = true;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;
  rocks.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return rocks;
}

// Invariant: `db_` holds exactly the rows that were put and not erased.
class RocksDiskStore : public DiskStore {
 public:
  RocksDiskStore(std::string folder, std::unique_ptr<rocksdb::DB> db)
      : folder_(std::move(folder)), db_(std::move(db)) {
    write_.disableWAL = true;
  }
  ~RocksDiskStore() override {
    db_.reset();
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);
    if (failed) LOG(WARNING) << folder_ << ": cannot be removed: " << failed.message();
  }

  Status Put(const DiskSpace& space, std::span<const Key> keys,
             std::span<const std::byte> rows) override {
    CHECK_EQ(rows.size(), keys.size() * space.row_bytes);
    DiskKey key;
    SetPrefix(space, &key);
    rocksdb::WriteBatch batch;
    for (size_t k = 0; k < keys.size(); ++k) {
      SetKey(keys[k], &key);
      batch.Put(AsSlice(key), AsSlice(rows.subspan(k * space.row_bytes, space.row_bytes)));
      if (batch.GetDataSize() < kPutBytes && k + 1 < keys.size()) continue;
      HDPS_RETURN_IF_ERROR(Told("writing rows", db_->Write(write_, &batch)));
      batch.Clear();
    }
    return {};
  }

  Status Get(const DiskSpace& space, std::span<const Key> keys, std::span<std::byte> rows,
             std::span<uint8_t> found) override {
    CHECK_EQ(rows.size(), keys.size() * space.row_bytes);
    CHECK_EQ(found.size(), keys.size());
    std::vector<DiskKey> own(std::min(keys.size(), kGetKeys));
    std::vector<rocksdb::Slice> slices(own.size());
    for (DiskKey& key : own) SetPrefix(space, &key);
    for (size_t i = 0; i < own.size(); ++i) slices[i] = AsSlice(own[i]);
    std::vector<rocksdb::PinnableSlice> values(own.size());
    std::vector<rocksdb::Status> statuses(own.size());
    for (size_t begin = 0; begin < keys.size(); begin += kGetKeys) {
      const size_t n = std::min(kGetKeys, keys.size() - begin);
      for (size_t i = 0; i < n; ++i) SetKey(keys[begin + i], &own[i]);
      db_->MultiGet(read_, db_->DefaultColumnFamily(), n, slices.data(), values.data(),
                    statuses.data(), /*sorted_input=*/true);
      for (size_t i = 0; i < n; ++i) {
        found[begin + i] = statuses[i].ok() ? 1 : 0;
        if (statuses[i].IsNotFound()) continue;
        HDPS_RETURN_IF_ERROR(Told("reading rows", statuses[i]));
        HDPS_RETURN_IF_ERROR(CheckLength(values[i], space));
        std::copy_n(reinterpret_cast<const std::byte*>(values[i].data()), space.row_bytes,
                    rows.begin() + static_cast<ptrdiff_t>((begin + i) * space.row_bytes));
        values[i].Reset();
      }
    }
    return {};
  }

  Status Erase(const DiskSpace& space, std::span<const Key> keys) override {
    DiskKey key;
    SetPrefix(space, &key);
    rocksdb::WriteBatch batch;
    for (const Key erased : keys) {
      SetKey(erased, &key);
      batch.Delete(AsSlice(key));
    }
    return Told("erasing rows", db_->Write(write_, &batch));
  }

  Status EraseAll(const DiskSpace& space) override {
    DiskKey first, end;
    SetPrefix(space, &first);
    SetKey(0, &first);
    end = first;
    for (size_t i = kPrefixBytes; i-- > 0 && ++end[i] == 0;) {
    }
    const bool last = std::all_of(end.begin(), end.end(), [](char c) { return c == 0; });
    if (last) end.fill(static_cast<char>(0xff));
    return Told("erasing rows",
                db_->DeleteRange(write_, db_->DefaultColumnFamily(), AsSlice(first), AsSlice(end)));
  }

  Status Scan(const DiskSpace& space, const Visit& visit) override {
    DiskKey first;
    SetPrefix(space, &first);
    SetKey(0, &first);
    rocksdb::ReadOptions options = read_;
    options.readahead_size = kScanBytes;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
    const rocksdb::Slice prefix(first.data(), kPrefixBytes);
    for (at->Seek(AsSlice(first)); at->Valid() && at->key().starts_with(prefix); at->Next()) {
      HDPS_RETURN_IF_ERROR(CheckLength(at->value(), space));
      const std::span<const std::byte> row(reinterpret_cast<const std::byte*>(at->value().data()),
                                           at->value().size());
      if (!visit(KeyOf(at->key()), row)) break;
    }
    return Told("reading rows", at->status());
  }

  uint64_t memory_bytes() const override {
    return Property(rocksdb::DB::Properties::kSizeAllMemTables) +
           Property(rocksdb::DB::Properties::kEstimateTableReadersMem);
  }
  uint64_t disk_bytes() const override {
    return Property(rocksdb::DB::Properties::kTotalSstFilesSize);
  }

 private:
  uint64_t Property(const std::string& name) const {
    uint64_t value = 0;
    return db_->GetIntProperty(name, &value) ? value : 0;
  }
  Status Told(const char* what, const rocksdb::Status& status) const {
    if (status.ok()) return {};
    return {Code::kIoError, "spilled rows in " + folder_ + ": " + what + ": " + status.ToString() +
                                "; free space there or give another cluster.spill_path, then start "
                                "the job again: it resumes from its last checkpoint"};
  }
  Status CheckLength(const rocksdb::Slice& row, const DiskSpace& space) const {
    if (row.size() == space.row_bytes) return {};
    return Told("reading rows", rocksdb::Status::Corruption(
                                    "a row of " + std::to_string(row.size()) +
                                    " bytes instead of " + std::to_string(space.row_bytes)));
  }

  const std::string folder_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ReadOptions read_;
  rocksdb::WriteOptions write_;
};

Status NotUsable(const std::string& folder, const std::string& why) {
  return {Code::kInvalidArgument,
          "cluster.spill_path: the folder " + folder + " for spilled rows cannot be used: " + why +
              "; give one on a local disk that is writable and no other job's"};
}

}  // namespace

Result<std::unique_ptr<DiskStore>> NewRocksDiskStore(const DiskStoreOptions& options) {
  const rocksdb::Options rocks = OptionsFor(options);
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);
  if (failed) return NotUsable(options.folder, failed.message());
  // Refuses while another process holds it; otherwise what a crashed one left goes.
  const rocksdb::Status emptied = rocksdb::DestroyDB(options.folder, rocks);
  if (!emptied.ok()) return NotUsable(options.folder, emptied.ToString());
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(rocks, options.folder, &db);
  if (!opened.ok()) return NotUsable(options.folder, opened.ToString());
  return std::unique_ptr<DiskStore>(
      std::make_unique<RocksDiskStore>(options.folder, std::unique_ptr<rocksdb::DB>(db)));
}

}  // namespace hdps
