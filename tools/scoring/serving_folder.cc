// Writes shards one by one, and reads how many rows files have.
#include "tools/scoring/serving_folder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/byte_count.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/vocabulary.h"
#include "common/platform/memory_limit.h"
#include "common/telemetry/process_usage.h"
#include "embedding/flat_file.h"
#include "embedding/snapshot/snapshot_walk.h"
#include "tools/scoring/checkpoint_model.h"

namespace hdps {
namespace {

const SavedFile* FileOf(const Manifest& manifest, const std::string& name) {
  const auto at = std::ranges::find(manifest.files, name, &SavedFile::name);
  return at == manifest.files.end() ? nullptr : &*at;
}

Result<SavedFile> WriteShard(FileSystem& files, const FoundCheckpoint& found, const Job& job,
                             ShardId id, const std::string& folder) {
  std::vector<TableSlice> empty = EmptySlices(job, found.manifest, id);
  std::vector<TableSlice*> slices;
  for (TableSlice& slice : empty) slices.push_back(&slice);
  return WriteFlat(files, folder, found.chain, id, slices);
}

// LoadVocabularyOf() has found the file.
Status CopyVocabulary(FileSystem& files, const DataSpec& data, const std::string& folder) {
  if (data.vocabulary.file.empty()) return {};
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files.FileSize(data.vocabulary.file));
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, data.vocabulary.file, bytes));
  return WriteFileAtomically(files, JoinPath(folder, kVocabularyName), text);
}

}  // namespace

bool IsServingFolder(const Manifest& manifest) {
  return FileOf(manifest, FlatName({0})) != nullptr;
}

Status WriteServingFolder(FileSystem& files, Executor& executor, const FoundCheckpoint& found,
                          const Job& job, const std::string& folder) {
  Manifest manifest = found.manifest;
  manifest.base_clock = kNoClock;
  manifest.base_checksum = 0;
  manifest.files.assign(manifest.num_shards, {});
  std::vector<Status> written(manifest.num_shards);
  executor.ParallelFor(manifest.num_shards, [&](size_t s) {
    Result<SavedFile> file = WriteShard(files, found, job, {static_cast<uint32_t>(s)}, folder);
    written[s] = file.status();
    if (file.ok()) manifest.files[s] = *std::move(file);
  });
  for (const Status& status : written) HDPS_RETURN_IF_ERROR(status);
  HDPS_RETURN_IF_ERROR(CopyVocabulary(files, job.data, folder));
  return WriteManifest(files, folder, manifest);
}

Result<ServingNeed> LeastServingNeed(FileSystem& files, const FoundCheckpoint& found,
                                     const Job& job) {
  ServingNeed need;
  for (uint32_t s = 0; s < found.manifest.num_shards; ++s) {
    if (const SavedFile* const flat = FileOf(found.manifest, FlatName({s})); flat != nullptr) {
      need.rows += flat->rows;
      need.index_bytes += FlatRows::SlotsFor(flat->rows) * sizeof(uint32_t);
      continue;
    }
    const auto whole =
        std::find_if(found.chain.rbegin(), found.chain.rend(),
                     [s](const CheckpointPart& part) { return HoldsAllRows(part, {s}); });
    if (whole == found.chain.rend()) continue;  // Loading names what is missing.
    const SavedFile& saved = *FileOf(whole->manifest, SnapshotName({s}));
    HDPS_ASSIGN_OR_RETURN(const std::vector<SnapshotTable> tables,
                          TablesOfSnapshot(files, whole->folder, saved));
    for (const SnapshotTable& table : tables) {
      const auto spec = std::ranges::find(job.tables, table.name, &TableSpec::name);
      if (spec == job.tables.end()) continue;  // Counts of a policy.
      need.rows += table.num_rows;
      need.bytes += table.num_rows * FlatRows::RowBytes(spec->weights, table.dim);
      need.index_bytes += FlatRows::SlotsFor(table.num_rows) * sizeof(uint32_t);
    }
  }
  need.bytes += need.index_bytes;
  return need;
}

Status CheckFits(FileSystem& files, const ServingNeed& need) {
  const MemoryLimit most = MostMemory(files);
  const uint64_t used = ResidentBytes(files);
  const uint64_t left = most.bytes > used ? most.bytes - used : 0;
  if (need.bytes <= left) return {};
  return {Code::kResourceExhausted, "the weights and keys of " + std::to_string(need.rows) +
                                        " rows take at least " + ShowByteCount(need.bytes) +
                                        ", and " + ShowByteCount(left) + " of " +
                                        ShowByteCount(most.bytes) + " (" + most.by +
                                        ") are left: " + ShowByteCount(need.bytes - left) +
                                        " are missing; --memory_limit leaves rows on disk"};
}

}  // namespace hdps
