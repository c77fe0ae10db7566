// Blocks in RocksDB: numbers in its tree, bytes in blob files beside it; no log.
#include "embedding/disk/disk_store.h"

#include <glog/logging.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/platform/failpoint.h"

namespace hdps {
namespace {

constexpr size_t kGetBlocks = 64;      // Looked up together.
constexpr size_t kPutBytes = 1 << 20;  // Written together, about.
constexpr uint64_t kWriteBufferMin = 1 << 20;
constexpr uint64_t kWriteBufferMax = 64 << 20;
constexpr uint64_t kBlobFileBytes = 32 << 20;
constexpr int kFilterBitsPerBlock = 10;  // So that one of many files is asked for a number.
constexpr int kOpenFilesMin = 32;
constexpr uint64_t kCacheParts = 4;  // One of so many of the memory finds blocks.

// (shard, table, number), big-endian: the order of bytes is that of the numbers.
constexpr size_t kPrefixBytes = 4;
using BlockKey = std::array<char, kPrefixBytes + sizeof(uint64_t)>;

BlockKey KeyOf(const DiskSpace& space, uint64_t number) {
  BlockKey key;
  const uint32_t prefix = space.shard.value << 16 | space.table.value;
  for (size_t i = 0; i < kPrefixBytes; ++i) key[i] = static_cast<char>(prefix >> (24 - 8 * i));
  for (size_t i = 0; i < sizeof(number); ++i) {
    key[kPrefixBytes + i] = static_cast<char>(number >> (56 - 8 * i));
  }
  return key;
}
rocksdb::Slice AsSlice(const BlockKey& key) { return {key.data(), key.size()}; }
rocksdb::Slice AsSlice(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Files kept open: half of what the process may have, the rest being for its peers. A write buffer
// becomes a file, so a large table has more of them than most systems let a process open.
int OpenFilesMax() {
  constexpr rlim_t kFilesMax = 1 << 20;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kOpenFilesMin;
  return std::max(static_cast<int>(std::min(files.rlim_cur, kFilesMax) / 2), kOpenFilesMin);
}

// Blocks go into blob files once, in the order in which they come; what RocksDB sorts and merges
// are their numbers alone, a hundredth of the bytes. A blob file goes when nothing in it is wanted
// any more; that comes about because rows are written anew from the old end on (DiskRows).
//
// Of memory it takes the buffers of blocks on their way to disk and the cache of numbers' places,
// together `memory_bytes`. Blocks themselves are the page cache's, which belongs to the machine: a
// cache of our own would hold them a second time, and rows that are read go to the memory tier.
rocksdb::Options OptionsFor(const DiskStoreOptions& options,
                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::Options rocks;
  rocks.create_if_missing = true;
  const uint64_t write_bytes =
      std::max(options.memory_bytes - options.memory_bytes / kCacheParts, 3 * kWriteBufferMin);
  rocks.write_buffer_size = std::clamp(write_bytes / 3, kWriteBufferMin, kWriteBufferMax);
  rocks.max_write_buffer_number = 3;
  // A disk that refuses once ends the job: nothing waits for it to come back.
  rocks.max_bgerror_resume_count = 0;
  rocks.max_background_jobs = 2;
  rocks.compression = rocksdb::kNoCompression;  // Weights are noise: it would only cost time.
  rocks.compaction_style = rocksdb::kCompactionStyleUniversal;
  rocks.level0_file_num_compaction_trigger = 8;
  rocks.enable_blob_files = true;
  rocks.blob_file_size = kBlobFileBytes;
  rocks.max_open_files = OpenFilesMax();
  rocks.table_cache_numshardbits = 4;  // Each part of that cache keeps a file at least.
  rocks.stats_dump_period_sec = 0;
  rocks.stats_persist_period_sec = 0;
  rocks.keep_log_file_num = 1;
  rocks.info_log_level = rocksdb::WARN_LEVEL;
  rocks.writable_file_max_buffer_size = 256 << 10;
  rocks.paranoid_checks = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerBlock));
  table.format_version = 5;
  rocks.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return rocks;
}

// Invariant: `db_` holds exactly the blocks that were put and not erased.
class RocksDiskStore : public DiskStore {
 public:
  RocksDiskStore(std::string folder, std::shared_ptr<rocksdb::Cache> cache,
                 std::unique_ptr<rocksdb::DB> db)
      : folder_(std::move(folder)), cache_(std::move(cache)), db_(std::move(db)) {
    write_.disableWAL = true;
    // Blocks carry their own, six times as fast as the library's without vectors.
    read_.verify_checksums = false;
  }
  ~RocksDiskStore() override {
    db_.reset();
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);
    if (failed) LOG(WARNING) << folder_ << ": cannot be removed: " << failed.message();
  }

  Status Put(const DiskSpace& space, std::span<const DiskBlock> blocks) override {
    HDPS_FAILPOINT_OR_RETURN("spill.write");
    rocksdb::WriteBatch batch;
    for (size_t b = 0; b < blocks.size(); ++b) {
      batch.Put(AsSlice(KeyOf(space, blocks[b].number)), AsSlice(blocks[b].bytes));
      if (batch.GetDataSize() < kPutBytes && b + 1 < blocks.size()) continue;
      HDPS_RETURN_IF_ERROR(Told("writing rows", db_->Write(write_, &batch)));
      batch.Clear();
    }
    return {};
  }

  Status Get(const DiskSpace& space, std::span<const uint64_t> numbers,
             const Visit& visit) override {
    HDPS_FAILPOINT_OR_RETURN("spill.read");
    const size_t at_once = std::min(numbers.size(), kGetBlocks);
    std::vector<BlockKey> own(at_once);
    std::vector<rocksdb::Slice> slices(at_once);
    std::vector<rocksdb::PinnableSlice> values(at_once);
    std::vector<rocksdb::Status> statuses(at_once);
    for (size_t begin = 0; begin < numbers.size(); begin += at_once) {
      const size_t n = std::min(at_once, numbers.size() - begin);
      for (size_t i = 0; i < n; ++i) {
        own[i] = KeyOf(space, numbers[begin + i]);
        slices[i] = AsSlice(own[i]);
      }
      db_->MultiGet(read_, db_->DefaultColumnFamily(), n, slices.data(), values.data(),
                    statuses.data(), /*sorted_input=*/true);
      for (size_t i = 0; i < n; ++i) {
        HDPS_RETURN_IF_ERROR(Told("reading rows", statuses[i]));
        HDPS_RETURN_IF_ERROR(
            visit(begin + i, std::as_bytes(std::span(values[i].data(), values[i].size()))));
        values[i].Reset();
      }
    }
    return {};
  }

  Status Erase(const DiskSpace& space, std::span<const uint64_t> numbers) override {
    rocksdb::WriteBatch batch;
    for (const uint64_t number : numbers) batch.Delete(AsSlice(KeyOf(space, number)));
    return Told("erasing rows", db_->Write(write_, &batch));
  }

  Status EraseAll(const DiskSpace& space) override {
    const BlockKey first = KeyOf(space, 0);
    BlockKey end = first;
    for (size_t i = kPrefixBytes; i-- > 0 && ++end[i] == 0;) {
    }
    const bool last = std::all_of(end.begin(), end.end(), [](char c) { return c == 0; });
    if (last) end.fill(static_cast<char>(0xff));
    return Told("erasing rows",
                db_->DeleteRange(write_, db_->DefaultColumnFamily(), AsSlice(first), AsSlice(end)));
  }

  Status Damaged(const std::string& what) const override {
    return Told("reading rows", rocksdb::Status::Corruption(what));
  }

  uint64_t memory_bytes() const override {
    return Property(rocksdb::DB::Properties::kSizeAllMemTables) +
           Property(rocksdb::DB::Properties::kEstimateTableReadersMem) + cache_->GetUsage();
  }
  uint64_t disk_bytes() const override {
    return Property(rocksdb::DB::Properties::kTotalSstFilesSize) +
           Property(rocksdb::DB::Properties::kTotalBlobFileSize);
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

  const std::string folder_;
  const std::shared_ptr<rocksdb::Cache> cache_;
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
  const std::shared_ptr<rocksdb::Cache> cache =
      rocksdb::NewLRUCache(options.memory_bytes / kCacheParts, /*num_shard_bits=*/2);
  const rocksdb::Options rocks = OptionsFor(options, cache);
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
      std::make_unique<RocksDiskStore>(options.folder, cache, std::unique_ptr<rocksdb::DB>(db)));
}

}  // namespace hdps
