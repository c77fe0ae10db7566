// Reads each stream of a job from begin to end with a cache on disk.
#include "tools/prepare/kept_rows.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/outside_text.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/batch_reader.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/cache/stream_stamp.h"
#include "worker/data/item_pool.h"

namespace hdps {
namespace {

constexpr char kTrainedRows[] = "train";

Status ReadAll(BatchReader& reader) {
  HDPS_RETURN_IF_ERROR(reader.StartEpoch(0, 0));
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const std::optional<Batch> batch, reader.Next());
    if (!batch.has_value()) return {};
  }
}

Result<KeptRows> KeepSet(const Job& job, FileSystem& files, const EvalSet& set,
                         const ReaderOptions& options) {
  const CachedForm form = options.items != nullptr ? CachedForm::kBase : CachedForm::kDerived;
  HDPS_ASSIGN_OR_RETURN(const StreamStamp stamp,
                        StampOfStream(files, job.data, set.files, options, form));
  RowCaches& caches = *options.cache;
  std::shared_ptr<const CachedRows> rows = caches.Find(stamp);
  const bool were_there = rows != nullptr;
  if (!were_there) {
    HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<BatchReader> reader,
                          NewBatchReader(files, job.data, set.files, options));
    HDPS_RETURN_IF_ERROR(ReadAll(*reader));
    rows = caches.Find(stamp);
  }
  if (rows == nullptr) {
    return Status(Code::kIoError,
                  "the rows of " + set.name + " could not be kept at " + job.data.cache_path +
                      ", as the log says: expected a folder with room for them, that no other "
                      "process is writing to");
  }
  return KeptRows{set.name, rows->path(), rows->num_rows(), rows->bytes(), were_there};
}

}  // namespace

Result<std::vector<KeptRows>> KeepRowsOf(const Job& job, FileSystem& files) {
  if (job.data.cache_path.empty()) {
    return Status(Code::kInvalidArgument,
                  "data.cache_path is empty: expected the folder for the rows, "
                  "--set=data.cache_path=DIR");
  }
  if (job.data.follow) {
    return Status(Code::kInvalidArgument,
                  "data.follow is true, and rows of a log that grows are read once: expected a job "
                  "whose data is whole");
  }
  RowCacheOptions caching = CacheOptionsOf(job, files, "");
  caching.cache = DataCache::kDisk;
  std::vector<KeptRows> kept;
  ReaderOptions options{.seed = job.seed, .shuffle = false, .side = RowSide::kTrained};
  options.labels = LabelsOf(job);
  options.cache = std::make_shared<RowCaches>(files, caching);
  const bool negatives = job.data.negatives.per_positive > 0;
  if (negatives) options.items = std::make_shared<ItemPool>(files, job);
  HDPS_ASSIGN_OR_RETURN(kept.emplace_back(),
                        KeepSet(job, files, {kTrainedRows, job.data.train}, options));
  options.items = nullptr;
  for (const EvalSet& set : EvalSetsOf(job.data)) {
    options.side = set.held_out ? RowSide::kHeldOut : RowSide::kAll;
    HDPS_ASSIGN_OR_RETURN(kept.emplace_back(), KeepSet(job, files, set, options));
  }
  return kept;
}

std::string DescribeKeptRows(const std::vector<KeptRows>& kept) {
  std::string text;
  for (const KeptRows& set : kept) {
    text += EscapeUntrusted(set.set) + ": " + std::to_string(set.rows) + " rows in " +
            ShowByteCount(set.bytes) + ", " + EscapeUntrusted(set.path) +
            (set.were_there ? ", as it was\n" : "\n");
  }
  return text;
}

}  // namespace hdps
