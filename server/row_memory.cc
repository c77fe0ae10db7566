// Foresees what a server takes, and keeps its rows within the limit.
#include "server/row_memory.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>

#include "common/byte_count.h"
#include "common/model_zoo.h"
#include "embedding/row_policy.h"
#include "embedding/row_store.h"

namespace hdps {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kDiskBufferMin = 4 << 20, kDiskBufferMax = 128 << 20;
// One part of so many of the limit is left free.
constexpr uint64_t kSpareParts = 16;
// The least that training can go on with.
constexpr uint64_t kRowBytesMin = 4 << 20;

uint64_t DiskBufferBytes(uint64_t limit) {
  return std::clamp(limit / 16, kDiskBufferMin, kDiskBufferMax);
}

// Floats of the dense tensors that lie at the servers; none where workers keep them.
uint64_t DenseFloatsAtServers(const Job& job) {
  return job.parallel.dense_exchange == DenseExchange::kAllreduce ? 0 : DenseFloats(job);
}

// Keys, rows and gradients of one step of all workers, if no key came twice.
uint64_t StepBytes(const Job& job, size_t num_workers) {
  uint64_t bytes = 0;
  // Every worker is given all dense weights and gives their gradients.
  bytes += num_workers * DenseFloatsAtServers(job) * 2 * sizeof(float);
  for (const LayerSpec& layer : job.model.layers) {
    if (layer.kind != LayerKind::kEmbedding) continue;
    const size_t features =
        layer.features.empty() ? FeaturesOf(job.data).sparse.size() : layer.features.size();
    for (const TableSpec& table : job.tables) {
      if (table.name != layer.table) continue;
      bytes += job.train.batch_size * features * (2 * sizeof(Key) + 2 * table.dim * sizeof(float));
    }
  }
  return bytes;
}

// What everything but the rows takes, as measured: the most of late, so that what comes and goes
// with every request does not tempt the rows to grow into it; and some more, for what comes before
// rows have made room for it.
class MeasuredOthers {
 public:
  MeasuredOthers(FileSystem& files, uint64_t first, uint64_t spare)
      : files_(files), most_(first), spare_(spare) {}
  uint64_t operator()(uint64_t row_bytes) {
    const uint64_t resident = ResidentBytes(files_);
    const uint64_t others = resident > row_bytes ? resident - row_bytes : 0;
    most_ = std::max(others, most_ - most_ / 256);
    return most_ + spare_;
  }

 private:
  FileSystem& files_;
  uint64_t most_;
  const uint64_t spare_;
};

}  // namespace

uint64_t ResidentBytes(FileSystem& files) {
  constexpr uint64_t kTextBytesMax = 4096;
  const Result<std::string> text = ReadWholeFile(files, "/proc/self/statm", kTextBytesMax);
  if (!text.ok()) return 0;
  const size_t blank = text->find(' ');
  uint64_t pages = 0;
  if (blank == text->npos) return 0;
  std::from_chars(text->data() + blank + 1, text->data() + text->size(), pages);
  return pages * kPageBytes;
}

uint64_t PeakResidentBytes(FileSystem& files) {
  constexpr uint64_t kTextBytesMax = 65536;
  constexpr std::string_view kName = "VmHWM:";
  const Result<std::string> text = ReadWholeFile(files, "/proc/self/status", kTextBytesMax);
  const size_t at = text.ok() ? text->find(kName) : std::string::npos;
  if (at == std::string::npos) return 0;
  const size_t digit = text->find_first_of("0123456789", at + kName.size());
  uint64_t kib = 0;
  if (digit == std::string::npos) return 0;
  std::from_chars(text->data() + digit, text->data() + text->size(), kib);
  return kib * 1024;
}

std::string MemoryPlan::Text() const {
  return "process " + ShowByteCount(process) + " + requests " + ShowByteCount(requests) +
         " + dense layers " + ShowByteCount(dense) + " + sketches " + ShowByteCount(sights) +
         " + disk tier " + ShowByteCount(disk) + " + rows and index " + ShowByteCount(rows) +
         " = " + ShowByteCount(total());
}

MemoryPlan PlanMemory(const Job& job, const RowMemoryOptions& options, uint64_t process_bytes) {
  const uint64_t limit = job.cluster.memory_limit;
  const double part = static_cast<double>(options.own_shards) / job.cluster.shards;
  MemoryPlan plan;
  plan.process = process_bytes;
  plan.requests =
      static_cast<uint64_t>(2 * part * static_cast<double>(StepBytes(job, options.num_workers)));
  for (const TableSpec& table : job.tables) {
    if (table.policy.admit_after > 1) {
      plan.sights +=
          static_cast<uint64_t>(part * static_cast<double>(table.policy.admit_sketch_bytes));
    }
    if (table.dense) {
      const uint64_t chunks = DenseFloatsAtServers(job) / table.dim;
      if (chunks == 0) continue;
      plan.dense = options.own_shards *
                   RowStore::PredictBytes(RowBytes(table),
                                          (chunks + job.cluster.shards - 1) / job.cluster.shards);
      continue;
    }
    uint64_t rows = options.expected_rows;
    if (table.policy.max_rows > 0) rows = std::min(rows, table.policy.max_rows);
    plan.rows +=
        options.own_shards * RowStore::PredictBytes(RowBytes(table), rows / job.cluster.shards);
  }
  if (limit == 0) return plan;
  plan.disk = DiskBufferBytes(limit);
  const uint64_t others = plan.total() - plan.rows;
  const uint64_t left = limit > others ? limit - others : 0;
  plan.rows = options.expected_rows > 0 ? std::min(plan.rows, left) : left;
  return plan;
}

Result<std::unique_ptr<RowMemory>> RowMemory::Make(const Job& job, const RowMemoryOptions& options,
                                                   FileSystem& files) {
  const uint64_t limit = job.cluster.memory_limit;
  const uint64_t process = options.own_process ? ResidentBytes(files) : 0;
  const MemoryPlan plan = PlanMemory(job, options, process);
  const bool rows_known = limit > 0 || options.expected_rows > 0;
  LOG(INFO) << "memory of server " << options.rank << ": " << plan.Text()
            << (rows_known ? "" : " before the first row; rows as they come")
            << (limit > 0 ? ", limit " + ShowByteCount(limit) : std::string());
  if (limit == 0) return std::unique_ptr<RowMemory>();
  if (plan.rows < kRowBytesMin && limit < plan.total() - plan.rows + kRowBytesMin) {
    return Status(Code::kInvalidArgument,
                  "cluster.memory_limit: " + ShowByteCount(limit) +
                      " leave no room for rows, as everything else takes " +
                      ShowByteCount(plan.total() - plan.rows) + "; give at least " +
                      ShowByteCount(plan.total() - plan.rows + kRowBytesMin));
  }
  const std::string& folder =
      job.cluster.spill_path.empty() ? options.spill_folder : job.cluster.spill_path;
  const std::string own = JoinPath(folder, "server_" + std::to_string(options.rank));
  std::unique_ptr<RowMemory> memory(new RowMemory());
  HDPS_ASSIGN_OR_RETURN(memory->disk_, NewRocksDiskStore({own, DiskBufferBytes(limit)}));
  LOG(INFO) << "rows beyond the limit go to " << own;
  std::function<uint64_t(uint64_t)> others;
  if (options.own_process) {
    others = MeasuredOthers(files, plan.total() - plan.rows, limit / kSpareParts);
  } else {
    others = [disk = memory->disk_.get(), planned = plan.requests + plan.sights](uint64_t) {
      return planned + disk->memory_bytes();
    };
  }
  memory->budget_ = std::make_unique<MemoryBudget>(limit, std::move(others));
  return memory;
}

}  // namespace hdps
