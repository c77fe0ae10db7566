// Decides by the settings where rows are kept, and says what comes of it.
#include "worker/data/cache/row_caches.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/byte_count.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/memory_limit.h"

namespace hdps {
namespace {

constexpr char kPrefix[] = "data.cache: ";

bool ReadsAgain(const Job& job) { return job.train.epochs > 1 || job.train.eval_every_steps > 0; }
bool KeepsInMemory(DataCache cache, bool of_all) {
  return cache == DataCache::kMemory || (cache == DataCache::kAuto && of_all);
}

}  // namespace

RowCacheOptions CacheOptionsOf(const Job& job, FileSystem& files, const std::string& folder) {
  RowCacheOptions options;
  options.cache = job.data.cache;
  options.folder = job.data.cache_path.empty() ? folder : job.data.cache_path;
  options.memory_max =
      static_cast<uint64_t>(job.data.cache_share * static_cast<double>(MostMemory(files).bytes));
  options.repeats = ReadsAgain(job);
  return options;
}

bool KeepsRowsInMemory(const Job& job, bool one_process) {
  return ReadsAgain(job) && KeepsInMemory(job.data.cache, one_process);
}

uint64_t KeptRowBytes(const Job& job) {
  const CachedForm form =
      job.data.negatives.per_positive > 0 ? CachedForm::kBase : CachedForm::kDerived;
  return PackedBytes(CachedShapeOf(job.data, LabelsOf(job), form)) + sizeof(RowEntry);
}

RowCaches::RowCaches(FileSystem& files, const RowCacheOptions& options)
    : files_(files), options_(options), budget_(std::make_shared<RowBudget>(options.memory_max)) {}

std::string RowCaches::PathOf(const StreamStamp& stamp) const {
  if (options_.folder.empty() || options_.cache == DataCache::kMemory) return "";
  return JoinPath(options_.folder, stamp.name);
}

void RowCaches::Say(const std::string& what) {
  if (said_.insert(what).second) LOG(INFO) << kPrefix << what;
}

std::shared_ptr<const CachedRows> RowCaches::Find(const StreamStamp& stamp) {
  if (!used()) return nullptr;
  MutexLock lock(mutex_);
  Stream& stream = streams_[stamp.name];
  if (stream.rows != nullptr) {
    if (stream.rows->stamp() == stamp.text) return stream.rows;
    LOG(WARNING) << kPrefix << WhatDiffers(stream.rows->stamp(), stamp.text)
                 << "; rows are parsed and kept anew";
    stream.rows = nullptr;
    stream.given_up = false;
  }
  const std::string path = PathOf(stamp);
  if (path.empty() || stream.passed_over == stamp.text) return nullptr;
  Result<std::shared_ptr<const CachedRows>> opened = CachedRows::Open(files_, path);
  if (opened.status().code() == Code::kNotFound) return nullptr;
  std::string why;
  if (!opened.ok()) {
    why = opened.status().message();
  } else if ((*opened)->stamp() != stamp.text) {
    why = path + " does not fit any more: " + WhatDiffers((*opened)->stamp(), stamp.text);
  } else {
    Say(std::to_string((*opened)->num_rows()) + " rows are read from " + path);
    stream.rows = *std::move(opened);
    return stream.rows;
  }
  LOG(WARNING) << kPrefix << why << "; it is passed over, and written anew by the next whole pass";
  stream.passed_over = stamp.text;
  return nullptr;
}

std::unique_ptr<RowWriter> RowCaches::Begin(const StreamStamp& stamp, uint32_t num_parts,
                                            Executor* executor) {
  if (!used()) return nullptr;
  MutexLock lock(mutex_);
  Stream& stream = streams_[stamp.name];
  const bool one_pass = !options_.repeats && options_.cache != DataCache::kDisk;
  if (one_pass || stream.writing || stream.given_up) return nullptr;
  if (num_parts > kCachingPartsMax) {
    Say("a worker of " + std::to_string(num_parts) +
        " would have to parse the rows of all; make the files before, by hdps prepare --cache");
    return nullptr;
  }
  RowWriterOptions writing;
  writing.path = PathOf(stamp);
  writing.holder = "a process that writes " + stamp.name;
  writing.executor = executor;
  const bool of_all = num_parts == 1 || options_.all_workers;
  writing.in_memory = KeepsInMemory(options_.cache, of_all);
  if (!writing.in_memory && writing.path.empty()) {
    Say("data.cache_path names no folder that the workers share, so text is read in each epoch");
    return nullptr;
  }
  stream.writing = true;
  return std::make_unique<RowWriter>(files_, std::move(writing), budget_);
}

void RowCaches::End(const StreamStamp& stamp, std::unique_ptr<RowWriter> writer, bool whole,
                    const std::string& now) {
  Result<std::shared_ptr<const CachedRows>> kept = std::shared_ptr<const CachedRows>();
  if (!writer->status().ok()) {
    kept = writer->status();
  } else if (whole && now == stamp.text) {
    kept = writer->Finish(stamp.text);
  }
  writer.reset();
  MutexLock lock(mutex_);
  Stream& stream = streams_[stamp.name];
  stream.writing = false;
  if (kept.ok() && *kept == nullptr) return;  // The next pass tries again.
  // Held by another process: its file may be there for the next epoch.
  if (kept.status().code() == Code::kInvalidArgument) {
    Say("rows are not kept by this process: " + kept.status().message());
    return;
  }
  stream.given_up = !kept.ok();
  if (!kept.ok()) {
    LOG(WARNING) << kPrefix << kept.status().message() << "; text is read in each epoch";
    return;
  }
  stream.rows = *std::move(kept);
  stream.passed_over.clear();
  LOG(INFO) << kPrefix << stream.rows->num_rows() << " rows are kept in "
            << ShowByteCount(stream.rows->bytes()) << " "
            << (stream.rows->path().empty() ? "of memory" : "at " + stream.rows->path());
}

void RowCaches::Damaged(const StreamStamp& stamp, const CachedRows& rows) {
  MutexLock lock(mutex_);
  Stream& stream = streams_[stamp.name];
  if (stream.rows.get() != &rows) return;
  LOG(WARNING)
      << kPrefix << rows.path()
      << " is damaged; text is read from here on, and the file is written anew by the next "
         "whole pass";
  stream.rows = nullptr;
  stream.passed_over = stamp.text;
}

}  // namespace hdps
