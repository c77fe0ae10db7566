// Keeps the parsed rows of a process's streams, and finds those that other processes have kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/job/spec/data_words.h"
#include "common/platform/file_system.h"
#include "worker/data/cache/cached_rows.h"
#include "worker/data/cache/row_writer.h"
#include "worker/data/cache/stream_stamp.h"

namespace hdps {

struct Job;

struct RowCacheOptions {
  DataCache cache = DataCache::kAuto;
  std::string folder;       // Of files; empty: there is none.
  uint64_t memory_max = 0;  // For all streams together, in bytes.
  bool repeats = true;      // Streams are read more than once. If not, kAuto only finds files.
  // All workers of the job share this object, so the rows in memory are those of all.
  bool all_workers = true;
};

// Returns what a job says. `folder` is for data.cache_path if that is empty.
RowCacheOptions CacheOptionsOf(const Job& job, FileSystem& files, const std::string& folder);

// Is true if the job keeps rows in memory, as long as they fit. `one_process`: all workers are in
// one process.
bool KeepsRowsInMemory(const Job& job, bool one_process);
// Returns the bytes that a kept row of the job's training data takes, with its place, if each
// feature has one key without a weight.
uint64_t KeptRowBytes(const Job& job);

// With more parts than this no worker keeps rows by itself: it would have to parse all of them.
inline constexpr uint32_t kCachingPartsMax = 8;

// Invariant: what Find() returns has the rows of the stream as its files are now. One writer at a
// time keeps a stream, in this process and, in a file, among all that share the folder.
//
// May be used by several threads.
class RowCaches {
 public:
  // `files` must outlive it.
  RowCaches(FileSystem& files, const RowCacheOptions& options);

  bool used() const { return options_.cache != DataCache::kNone; }
  // Returns the rows of the stream; null: they are not kept. Logs why a file is not used.
  std::shared_ptr<const CachedRows> Find(const StreamStamp& stamp);
  // Returns who keeps the rows of a stream that is about to be read by part; null: nobody does now.
  // A file is written by the executor's background thread, if there is one.
  std::unique_ptr<RowWriter> Begin(const StreamStamp& stamp, uint32_t num_parts,
                                   Executor* executor);
  // Takes the writer of a stream that was read, or given up if not `whole`. `now` is its stamp
  // after reading.
  void End(const StreamStamp& stamp, std::unique_ptr<RowWriter> writer, bool whole,
           const std::string& now);
  // Forgets rows that were found damaged; they are kept anew when the stream is read again.
  void Damaged(const StreamStamp& stamp, const CachedRows& rows);

 private:
  struct Stream {
    std::shared_ptr<const CachedRows> rows;
    bool writing = false;
    bool given_up = false;    // Its rows cannot be kept.
    std::string passed_over;  // The damaged file that is not opened again before it is replaced.
  };
  std::string PathOf(const StreamStamp& stamp) const;
  // Logs a line, once.
  void Say(const std::string& what) HDPS_REQUIRES(mutex_);

  FileSystem& files_;
  const RowCacheOptions options_;
  const std::shared_ptr<RowBudget> budget_;
  Mutex mutex_;
  std::map<std::string, Stream> streams_ HDPS_GUARDED_BY(mutex_);  // By name.
  std::set<std::string> said_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
