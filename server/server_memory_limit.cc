// Predicts the memory of a server, and keeps its rows within the limit.
#include "server/server_memory_limit.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>

#include "common/base/byte_count.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/tables/joined_tables.h"
#include "common/planning/in_place.h"
#include "common/process/command_line.h"
#include "common/telemetry/process_usage.h"
#include "embedding/disk/disk_rows.h"
#include "embedding/memory/row_policy.h"
#include "embedding/memory/row_store.h"
#include "embedding/tiered_rows.h"
#include "server/checkpoint_writer.h"
#include "server/staleness/pulled_rows.h"

namespace hdps {
namespace {

constexpr uint64_t kDiskBufferMin = 4 << 20, kDiskBufferMax = 128 << 20;
// One part in so many of the limit is left free.
constexpr uint64_t kSpareParts = 16;
// The smallest memory for rows with which training can go on.
constexpr uint64_t kRowBytesMin = 4 << 20;

uint64_t DiskBufferBytes(uint64_t limit) {
  return std::clamp(limit / 16, kDiskBufferMin, kDiskBufferMax);
}

// Returns the bytes of keys, rows and gradients of one step of all workers, if no key repeats.
uint64_t StepBytes(const Job& job, size_t num_workers) {
  uint64_t bytes = 0;
  // Every worker pulls all dense weights of servers and pushes their gradients.
  bytes += num_workers * DenseFloatsAtServers(job) * 2 * sizeof(float);
  for (const LayerSpec& layer : job.model.layers) {
    if (!ReadsRows(job.model, layer)) continue;
    const size_t features =
        layer.features.empty() ? FeaturesOf(job.data).sparse.size() : layer.features.size();
    for (const TableSpec& table : job.tables) {
      if (table.name != layer.table) continue;
      bytes += job.train.batch_size * features * (2 * sizeof(Key) + 2 * table.dim * sizeof(float));
    }
  }
  return bytes;
}

uint64_t ExpectedRows(const TableSpec& table, const MemoryLimitOptions& options) {
  const uint64_t cap = table.policy.max_rows;
  return cap > 0 ? std::min(options.expected_rows, cap) : options.expected_rows;
}

// Measures the memory that the process needs besides rows. Returns the recent maximum instead of
// the current value, because request buffers come and go and rows must not grow into that space;
// adds a reserve for what is allocated before rows have been moved to disk.
class NonRowMemory {
 public:
  NonRowMemory(FileSystem& files, uint64_t first, uint64_t spare)
      : files_(files), most_(first), spare_(spare) {}
  uint64_t operator()(uint64_t row_bytes) {
    // Freed blocks and requests stay in the heap: tens of MiB in a busy server.
    if (calls_++ % kCallsBetweenReturns == 0) ReturnFreedMemory();
    const uint64_t resident = ResidentBytes(files_);
    const uint64_t others = resident > row_bytes ? resident - row_bytes : 0;
    most_ = std::max(others, most_ - most_ / 256);
    return most_ + spare_;
  }

 private:
  static constexpr uint64_t kCallsBetweenReturns = 4096;

  FileSystem& files_;
  uint64_t most_, calls_ = 0;
  const uint64_t spare_;
};

// Locks the folder before it is emptied: another server, of this job or another, may have rows
// there.
Result<std::unique_ptr<FileLock>> LockSpillFolder(FileSystem& files, const std::string& folder,
                                                  const MemoryLimitOptions& options) {
  const std::string server = "server_" + std::to_string(options.rank);
  Status status = files.MakeDirectories(folder);
  if (status.ok()) {
    Result<std::unique_ptr<FileLock>> lock =
        files.Lock(JoinPath(folder, server + ".lock"), server + " (" + options.host + ")");
    if (lock.ok()) return lock;
    status = lock.status();
  }
  return Status(Code::kInvalidArgument,
                "cluster.spill_path: the folder " + folder +
                    " for spilled rows cannot be used: " + status.message() +
                    "; give one on a local disk that is writable and no other job's");
}

}  // namespace

void HoldWithinLimit(const Job& job, PeerLimits* limits) {
  constexpr uint64_t kLeast = 64 << 20;
  if (job.cluster.memory_limit == 0) return;
  const uint64_t most = std::max(kLeast, job.cluster.memory_limit / 2);
  HoldAtMost(std::min(limits->all_held_bytes_max, most), limits);
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
         " + dense layers " + ShowByteCount(dense) + " + sketches " + ShowByteCount(sketches) +
         " + disk tier " + ShowByteCount(disk) +
         (copies > 0 ? " + copies for saves " + ShowByteCount(copies) : std::string()) +
         (spilled > 0 ? " + what finds rows on disk " + ShowByteCount(spilled) : std::string()) +
         " + rows and index " + ShowByteCount(rows) + " = " + ShowByteCount(total());
}

// Copies come and go. What is left free holds those that the measured memory no longer remembers,
// so they may take no more than that.
uint64_t CopyBytes(const Job& job) {
  const uint64_t limit = job.cluster.memory_limit;
  return limit == 0 ? kCopiesBytesMax : std::min(limit / kSpareParts, kCopiesBytesMax);
}

MemoryPlan PlanMemory(const Job& job, const MemoryLimitOptions& options, uint64_t process_bytes) {
  const uint64_t limit = job.cluster.memory_limit;
  const double part = static_cast<double>(options.own_shards) / job.cluster.shards;
  MemoryPlan plan;
  uint64_t spilled = 0;
  plan.process = process_bytes;
  // Two steps, each half rows and half gradients, and the rows that are kept for who takes up a
  // step.
  const double step = part * static_cast<double>(StepBytes(job, options.num_workers));
  const bool keeps = job.train.mode == Mode::kSync && WhyNotInPlace(job).empty();
  const double kept = keeps ? 1 + static_cast<double>(StepsTakenUp(job)) : 0;
  plan.requests = static_cast<uint64_t>((2 + kept / 2) * step);
  plan.requests += PulledRowBytes(job, static_cast<uint64_t>(step / 2));
  const std::vector<uint32_t> first_of_group = TablesThatShareRows(job);
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    const TableSpec& table = job.tables[t];
    if (table.policy.admit_after > 1) {
      plan.sketches +=
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
    if (first_of_group[t] != t) continue;  // Its part is in the rows of that table.
    size_t row_bytes = 0;
    for (uint32_t other = t; other < job.tables.size(); ++other) {
      if (first_of_group[other] == t) row_bytes += RowBytes(job.tables[other]);
    }
    const uint64_t rows = ExpectedRows(table, options) / job.cluster.shards;
    plan.rows += options.own_shards * RowStore::PredictBytes(row_bytes, rows);
    spilled += options.own_shards * DiskRows::PredictBytes(row_bytes, rows);
  }
  if (limit == 0) return plan;
  plan.disk = DiskBufferBytes(limit);
  // Copies of dense layers and of sketches alone are within the spare part.
  plan.copies = job.checkpoint.saves_deltas() ? CopyBytes(job) : 0;
  const auto left = [&] { return limit > plan.others() ? limit - plan.others() : 0; };
  if (options.expected_rows == 0) {
    plan.rows = left();
  } else if (plan.rows > left()) {
    plan.spilled = spilled;
    plan.rows = left();
  }
  return plan;
}

std::vector<MemoryPart> MemoryOfServers(const Job& job, size_t own_shards) {
  double dense = 0, sketches = 0;
  for (const TableSpec& table : job.tables) {
    if (table.policy.admit_after > 1) {
      sketches += static_cast<double>(table.policy.admit_sketch_bytes);
    }
    if (table.dense) {
      dense += double(DenseFloatsAtServers(job) / table.dim) * double(RowBytes(table));
    }
  }
  const double part = static_cast<double>(own_shards) / job.cluster.shards;
  return {{"dense layers with their optimizer's state (model.hidden, model.layers)",
           static_cast<uint64_t>(part * dense)},
          {"sketches of keys without a row (policy.admit_sketch_bytes)",
           static_cast<uint64_t>(part * sketches)}};
}

std::string WhyLimitIsTooSmall(const Job& job, const MemoryLimitOptions& options,
                               uint64_t process_bytes) {
  const uint64_t limit = job.cluster.memory_limit;
  const auto short_of = [limit](const MemoryPlan& plan) {
    return plan.rows < kRowBytesMin && limit < plan.others() + kRowBytesMin;
  };
  const MemoryPlan plan = PlanMemory(job, options, process_bytes);
  if (limit == 0 || !short_of(plan)) return "";
  std::string why = "cluster.memory_limit: " + ShowByteCount(limit) +
                    " leave no room for rows, as everything else takes " +
                    ShowByteCount(plan.others());
  if (plan.spilled > 0) {
    why += ", of which " + ShowByteCount(plan.spilled) + " find the rows that are on disk";
  }
  // A larger limit means larger disk buffers, so this searches.
  uint64_t enough = plan.others() + kRowBytesMin;
  Job larger = job;
  for (larger.cluster.memory_limit = enough; short_of(PlanMemory(larger, options, process_bytes));
       larger.cluster.memory_limit = enough) {
    enough += enough / 64;
  }
  why += "; give at least " + ShowByteCount(enough);
  MemoryLimitOptions fewer = options;
  while (fewer.own_shards > 1 && plan.spilled > 0) {
    --fewer.own_shards;
    if (short_of(PlanMemory(job, fewer, process_bytes))) continue;
    const size_t servers = (job.cluster.shards + fewer.own_shards - 1) / fewer.own_shards;
    return why + ", or " + std::to_string(servers) + " servers";
  }
  return why;
}

ServerMemoryLimit::ServerMemoryLimit(const Job& job, const MemoryLimitOptions& options,
                                     uint64_t process_bytes)
    : job_(std::make_shared<const Job>(job)), options_(options), process_bytes_(process_bytes) {}

std::string ServerMemoryLimit::trouble() const {
  MutexLock lock(trouble_mutex_);
  return trouble_;
}

void ServerMemoryLimit::WarnIfTooSmallFor(uint64_t rows) const {
  MemoryLimitOptions loaded = options_;
  uint64_t tables = 0;
  for (const TableSpec& table : job_->tables) tables += table.dense ? 0 : 1;
  loaded.expected_rows =
      rows * job_->cluster.shards / std::max<uint64_t>(1, tables * loaded.own_shards);
  const std::string why = WhyLimitIsTooSmall(*job_, loaded, process_bytes_);
  if (!why.empty()) LOG(WARNING) << "a checkpoint of " << rows << " rows at this server: " << why;
}

Result<std::unique_ptr<ServerMemoryLimit>> ServerMemoryLimit::Make(
    const Job& job, const MemoryLimitOptions& options, FileSystem& files) {
  const uint64_t limit = job.cluster.memory_limit;
  const uint64_t process = options.own_process ? ResidentBytes(files) : 0;
  const MemoryPlan plan = PlanMemory(job, options, process);
  const bool rows_known = limit > 0 || options.expected_rows > 0;
  LOG(INFO) << "memory of server " << options.rank << ": " << plan.Text()
            << (rows_known ? "" : " before the first row; rows as they come")
            << (limit > 0 ? ", limit " + ShowByteCount(limit) : std::string());
  HDPS_RETURN_IF_ERROR(CheckMemory("server " + std::to_string(options.rank),
                                   MemoryOfServers(job, options.own_shards), MostMemory(files)));
  if (limit == 0) return std::unique_ptr<ServerMemoryLimit>();
  if (job.tables.size() > TieredRows::kTablesMax) {
    return Status(Code::kInvalidArgument,
                  "cluster.memory_limit: a job with it has at most " +
                      std::to_string(TieredRows::kTablesMax) + " tables, and this one has " +
                      std::to_string(job.tables.size()) + "; join tables, or give no limit");
  }
  const std::string why = WhyLimitIsTooSmall(job, options, process);
  if (!why.empty()) return Status(Code::kInvalidArgument, why);
  const std::string& folder =
      job.cluster.spill_path.empty() ? options.spill_folder : job.cluster.spill_path;
  const std::string own = JoinPath(folder, "server_" + std::to_string(options.rank));
  std::unique_ptr<ServerMemoryLimit> memory(new ServerMemoryLimit(job, options, process));
  HDPS_ASSIGN_OR_RETURN(memory->folder_lock_, LockSpillFolder(files, folder, options));
  const auto on_full = [self = memory.get()](const std::string& full) {
    if (!full.empty()) LOG(WARNING) << full;
    if (full.empty()) LOG(INFO) << "there is space for spilled rows again";
    MutexLock lock(self->trouble_mutex_);
    self->trouble_ = full;
  };
  HDPS_ASSIGN_OR_RETURN(
      memory->disk_, NewRocksDiskStore({own, DiskBufferBytes(limit),
                                        int64_t{1000} * job.checkpoint.retry_s, on_full, &files}));
  LOG(INFO) << "rows beyond the limit go to " << own;
  std::function<uint64_t(uint64_t)> others;
  if (options.own_process) {
    others = NonRowMemory(files, plan.others() - plan.spilled, limit / kSpareParts);
  } else {
    others = [disk = memory->disk_.get(), planned = plan.requests + plan.sketches](uint64_t) {
      return planned + disk->memory_bytes();
    };
  }
  memory->budget_ = std::make_unique<MemoryBudget>(limit, std::move(others));
  return memory;
}

}  // namespace hdps
