// Stores blocks in RocksDB: numbers in its tree, bytes in blob files beside it; no log.
#include "embedding/disk/disk_store.h"

#include <glog/logging.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/failpoint.h"
#include "common/platform/memory_full.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"

namespace hdps {
namespace {

constexpr size_t kGetBlocks = 64;      // Blocks looked up together.
constexpr size_t kPutBytes = 1 << 20;  // Bytes written together, about.
constexpr uint64_t kWriteBufferMin = 1 << 20;
constexpr uint64_t kWriteBufferMax = 64 << 20;
constexpr uint64_t kBlobFileBytes = 32 << 20;
constexpr int kFilterBitsPerBlock = 10;  // So that a lookup reads only one of many files.
constexpr int kOpenFilesMin = 32;
constexpr uint64_t kCacheParts = 4;  // One part in four of the memory caches the places of blocks.
constexpr int64_t kFullRetryMs = 200;  // Between two tries at a full disk.

// Keys are (shard, table, number), big-endian, so the order of bytes is that of the numbers.
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

// Returns how many files RocksDB may keep open: half of the process's limit, since the rest is for
// connections. A write buffer becomes a file, so a large table has more files than most systems let
// a process open.
int OpenFilesMax() {
  constexpr rlim_t kFilesMax = 1 << 20;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kOpenFilesMin;
  return std::max(static_cast<int>(std::min(files.rlim_cur, kFilesMax) / 2), kOpenFilesMin);
}

// Returns RocksDB's options. Blocks go into blob files once, in the order in which they come;
// RocksDB sorts and merges only their numbers, a hundredth of the bytes. A blob file is deleted
// when none of its blocks is in use any more; that comes about because DiskRows writes rows anew
// from the old end on.
//
// Memory holds the buffers of blocks on their way to disk and the cache of the places of blocks,
// together `memory_bytes`. Blocks on disk are cached by the system's page cache only: a cache of
// our own would hold them a second time, and rows that are read move to the memory tier.
rocksdb::Options OptionsFor(const DiskStoreOptions& options,
                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::Options rocks;
  rocks.create_if_missing = true;
  const uint64_t write_bytes =
      std::max(options.memory_bytes - options.memory_bytes / kCacheParts, 3 * kWriteBufferMin);
  rocks.write_buffer_size = std::clamp(write_bytes / 3, kWriteBufferMin, kWriteBufferMax);
  rocks.max_write_buffer_number = 3;
  rocks.max_bgerror_resume_count = 0;  // Writers wait for the disk themselves, and report it.
  rocks.max_background_jobs = 2;
  rocks.compression = rocksdb::kNoCompression;  // Weights are noise; it would only cost time.
  rocks.compaction_style = rocksdb::kCompactionStyleUniversal;
  rocks.level0_file_num_compaction_trigger = 8;
  rocks.enable_blob_files = true;
  rocks.blob_file_size = kBlobFileBytes;
  rocks.max_open_files = OpenFilesMax();
  rocks.table_cache_numshardbits = 4;  // Each part of the cache keeps at least one file.
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

// A file of RocksDB's with injected faults.
class FaultySpillFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultySpillFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path,
                  hdps::FileSystem& faults)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), faults_(faults) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus fault = Fault(data.size());
    return fault.ok() ? FSWritableFileOwnerWrapper::Append(data, options, debug) : fault;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus fault = Fault(data.size());
    return fault.ok() ? FSWritableFileOwnerWrapper::Append(data, options, verification, debug)
                      : fault;
  }

 private:
  // Returns the fault in RocksDB's own form.
  rocksdb::IOStatus Fault(uint64_t bytes) const {
    const int error = faults_.FaultOfWrite(path_, bytes);
    if (error == 0) return rocksdb::IOStatus::OK();
    const std::string reason = std::generic_category().message(error);
    rocksdb::IOStatus status = error == ENOSPC ? rocksdb::IOStatus::NoSpace(path_, reason)
                                               : rocksdb::IOStatus::IOError(path_, reason);
    status.SetRetryable(error == ENOSPC);
    return status;
  }

  const std::string path_;
  hdps::FileSystem& faults_;
};

class FaultySpillDisk : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultySpillDisk(hdps::FileSystem& faults)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), faults_(faults) {}
  const char* Name() const override { return "FaultySpillDisk"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus made = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (made.ok()) *file = std::make_unique<FaultySpillFile>(std::move(*file), path, faults_);
    return made;
  }

 private:
  hdps::FileSystem& faults_;
};

// Is true for a full disk and for its consequence, buffers that stay full.
bool IsFull(const rocksdb::Status& status) { return status.IsNoSpace() || status.IsIncomplete(); }

// Lets threads wait until a full disk has room again.
class FullDisk {
 public:
  explicit FullDisk(const DiskStoreOptions& options)
      : options_(options), clock_(NewSystemClock()) {}

  // Calls `again` until it is no longer refused for lack of space, the time is up, or Stop() is
  // called. Returns the result of the last try.
  template <typename Try>
  rocksdb::Status Wait(rocksdb::Status status, const Try& again) HDPS_EXCLUDES(mutex_) {
    Tell(+1, status);
    const int64_t until = clock_->NowMs() + options_.full_wait_ms;
    while (IsFull(status) && clock_->NowMs() < until && pause_.For(kFullRetryMs)) {
      // One thread at a time, since each try has the whole store written anew.
      MutexLock lock(mutex_);
      status = again();
    }
    Tell(-1, status);
    return status;
  }
  void Stop() { pause_.End(); }

 private:
  void Tell(int change, const rocksdb::Status& status) HDPS_EXCLUDES(told_mutex_) {
    MutexLock lock(told_mutex_);
    const bool first = waiting_ == 0;
    waiting_ += change;
    if (!options_.on_full) return;
    if (waiting_ == 0) return options_.on_full("");
    if (!first) return;
    options_.on_full("no space for spilled rows in " + options_.folder + " (" + status.ToString() +
                     "); it goes on when there is some, or ends after " +
                     std::to_string(options_.full_wait_ms / 1000) + " s");
  }

  const DiskStoreOptions options_;
  const std::unique_ptr<MonotonicClock> clock_;
  Pause pause_;
  Mutex mutex_, told_mutex_;
  int waiting_ HDPS_GUARDED_BY(told_mutex_) = 0;
};

// Invariant: `db_` holds exactly the blocks that were put and not erased.
class RocksDiskStore : public DiskStore {
 public:
  RocksDiskStore(const DiskStoreOptions& options, std::shared_ptr<rocksdb::Cache> cache,
                 std::unique_ptr<rocksdb::Env> faulty, std::unique_ptr<rocksdb::DB> db)
      : folder_(options.folder),
        full_(options),
        cache_(std::move(cache)),
        faulty_(std::move(faulty)),
        db_(std::move(db)) {
    write_.disableWAL = true;
    // Blocks carry their own checksum, which is six times as fast as the library's without vectors.
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
      HDPS_RETURN_IF_ERROR(Write("writing rows", &batch));
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
    return Write("erasing rows", &batch);
  }

  Status EraseAll(const DiskSpace& space) override {
    const BlockKey first = KeyOf(space, 0);
    BlockKey end = first;
    for (size_t i = kPrefixBytes; i-- > 0 && ++end[i] == 0;) {
    }
    const bool last = std::all_of(end.begin(), end.end(), [](char c) { return c == 0; });
    if (last) end.fill(static_cast<char>(0xff));
    rocksdb::WriteBatch batch;
    batch.DeleteRange(AsSlice(first), AsSlice(end));
    return Write("erasing rows", &batch);
  }

  void StopWaiting() override { full_.Stop(); }

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
  Status Write(const char* what, rocksdb::WriteBatch* batch) {
    rocksdb::Status status = db_->Write(write_, batch);
    if (IsFull(status)) {
      // What could not be written to disk is still in memory. The library accepts no more until it
      // is told to try again.
      status = full_.Wait(std::move(status), [&] {
        static_cast<void>(db_->Resume());  // The next write returns its error.
        return db_->Write(write_, batch);
      });
    }
    return Told(what, status);
  }
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
  FullDisk full_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::unique_ptr<rocksdb::Env> faulty_;  // Null: the library's own.
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
  const MemoryFor disk("buffers of the disk tier (a sixteenth of cluster.memory_limit)");
  const std::shared_ptr<rocksdb::Cache> cache =
      rocksdb::NewLRUCache(options.memory_bytes / kCacheParts, /*num_shard_bits=*/2);
  rocksdb::Options rocks = OptionsFor(options, cache);
  std::unique_ptr<rocksdb::Env> faulty;
  if (options.files != nullptr) {
    faulty = rocksdb::NewCompositeEnv(std::make_shared<FaultySpillDisk>(*options.files));
    rocks.env = faulty.get();
  }
  std::error_code failed;
  if (std::filesystem::is_symlink(options.folder, failed)) {
    return NotUsable(options.folder,
                     "it is a link, and what it leads to would be emptied; remove the link, or let "
                     "cluster.spill_path name a folder for it");
  }
  std::filesystem::create_directories(options.folder, failed);
  if (failed) return NotUsable(options.folder, failed.message());
  // Fails while another process holds the folder; otherwise removes what a crashed process left.
  const rocksdb::Status emptied = rocksdb::DestroyDB(options.folder, rocks);
  if (!emptied.ok()) return NotUsable(options.folder, emptied.ToString());
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(rocks, options.folder, &db);
  if (opened.IsNoSpace()) {
    return Status(Code::kIoError,
                  "no space for spilled rows in " + options.folder + ": " + opened.ToString());
  }
  if (!opened.ok()) return NotUsable(options.folder, opened.ToString());
  return std::unique_ptr<DiskStore>(std::make_unique<RocksDiskStore>(
      options, cache, std::move(faulty), std::unique_ptr<rocksdb::DB>(db)));
}

}  // namespace hdps
