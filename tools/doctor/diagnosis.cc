// Applies one rule per subject.
#include "tools/doctor/diagnosis.h"

#include <algorithm>

#include "common/base/byte_count.h"
#include "common/base/show_number.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/precision.h"

namespace hdps {
namespace {

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

std::string Bytes(double bytes) { return ShowByteCount(static_cast<uint64_t>(bytes)); }

class Doctor {
 public:
  Doctor(const Job& job, const LocalMembers& here, const MachineFacts& facts,
         const PlanAnswer* answer)
      : job_(job), here_(here), facts_(facts), answer_(answer) {}

  std::vector<Diagnosis> Look() {
    LookAtOut();
    LookAtSpill();
    LookAtAddresses();
    LookAtMemory();
    LookAtLimits();
    LookAtCores();
    LookAtGpu();
    LookAtClock();
    return std::move(found_);
  }

 private:
  void Good(const char* subject, std::string text) {
    found_.push_back({Finding::kGood, subject, std::move(text)});
  }
  void Warn(const char* subject, std::string text) {
    found_.push_back({Finding::kWarning, subject, std::move(text)});
  }
  void Fault(const char* subject, std::string text) {
    found_.push_back({Finding::kFault, subject, std::move(text)});
  }

  // Needs room for all checkpoints that are kept and the one being written, all full.
  void LookAtOut() {
    if (!facts_.out_trouble.empty()) return Fault("out", facts_.out_trouble);
    const std::string free = Bytes(double(facts_.out.free)) + " free";
    if (answer_ == nullptr) {
      if (facts_.out.free < kGiB) {
        return Warn("out", free + " on the disk of --out: --rows would tell what checkpoints take");
      }
      return Good("out", free);
    }
    const double needed = answer_->checkpoint_bytes * (job_.checkpoint.keep + 1);
    if (needed > double(facts_.out.free)) {
      return Fault("out", free + " on the disk of --out, and " +
                              std::to_string(job_.checkpoint.keep + 1) + " checkpoints take " +
                              Bytes(needed) +
                              ": another disk, or a smaller checkpoint.keep, would do");
    }
    const uint64_t largest = facts_.file_bytes_max;
    const double shard = answer_->checkpoint_bytes / job_.cluster.shards;
    if (shard > double(largest)) {
      return Fault("out", "a file may have " + Bytes(double(largest)) +
                              " (ulimit -f), and a shard " + "of a checkpoint takes " +
                              Bytes(shard) + ": ulimit -f unlimited");
    }
    Good("out", free + ", checkpoints take " + Bytes(needed));
  }

  void LookAtSpill() {
    if (job_.cluster.memory_limit == 0) return;
    if (!facts_.spill_trouble.empty()) return Fault("rows on disk", facts_.spill_trouble);
    if (answer_ == nullptr || job_.cluster.spill_path.empty()) return;
    const double rows = here_.servers * answer_->server_row_bytes;
    const double beyond = rows - here_.servers * double(job_.cluster.memory_limit);
    if (beyond > double(facts_.spill.free)) {
      return Fault("rows on disk",
                   Bytes(beyond) + " of rows do not fit cluster.memory_limit, and " +
                       job_.cluster.spill_path + " has " + Bytes(double(facts_.spill.free)) +
                       " free: another cluster.spill_path would do");
    }
    Good("rows on disk", Bytes(double(facts_.spill.free)) + " free");
  }

  void LookAtAddresses() {
    if (!facts_.listen_trouble.empty()) {
      Fault("listen", facts_.listen_trouble);
    } else if (!facts_.listen.empty()) {
      Good("listen", facts_.listen + " is free");
    }
    if (!facts_.scheduler_trouble.empty()) {
      Fault("scheduler", facts_.scheduler_trouble);
    } else if (!facts_.scheduler.empty()) {
      Good("scheduler", facts_.scheduler + " can be reached");
    }
  }

  void LookAtMemory() {
    const double free = double(facts_.memory.free);
    const std::string there = Bytes(free) + " of " + Bytes(double(facts_.memory.total)) + " free";
    const double limits = double(job_.cluster.memory_limit) * here_.servers;
    if (limits > double(facts_.memory.total)) {
      return Fault("memory", there + ", and cluster.memory_limit allows the servers here " +
                                 Bytes(limits) + ": a smaller one would do");
    }
    if (answer_ == nullptr) return Good("memory", there);
    double server = answer_->server_row_bytes + answer_->server_index_bytes;
    if (limits > 0) server = std::min(server, double(job_.cluster.memory_limit));
    const double needed = here_.servers * (server + answer_->server_buffer_bytes) +
                          here_.workers * answer_->worker_bytes;
    if (needed > free) {
      return Fault("memory", there + ", and the members here will hold " + Bytes(needed) +
                                 ": more machines, or cluster.memory_limit, would do");
    }
    Good("memory", there + ", the members here will hold " + Bytes(needed));
  }

  void LookAtLimits() {
    const uint64_t members = uint64_t{here_.servers} + here_.workers + 1;
    // Each member needs descriptors for its connections to the others and for files it writes.
    const uint64_t needed = 64 + 4 * members + (job_.cluster.memory_limit > 0 ? 512 : 0);
    if (facts_.open_files_max < needed) {
      Fault("open files", "a process may have " + std::to_string(facts_.open_files_max) +
                              ", and needs " + std::to_string(needed) + ": ulimit -n 4096");
    } else {
      Good("open files", facts_.open_files_max > (uint64_t{1} << 30)
                             ? "no limit"
                             : std::to_string(facts_.open_files_max) + " a process");
    }
    if (facts_.huge_pages == "never") {
      Warn("huge pages",
           "off, so rows are found more slowly: echo madvise > "
           "/sys/kernel/mm/transparent_hugepage/enabled");
    } else {
      Good("huge pages", facts_.huge_pages.empty() ? "not told" : facts_.huge_pages);
    }
    if (facts_.shared_memory.free < 64 * kMiB) {
      Warn("shared memory", Bytes(double(facts_.shared_memory.free)) +
                                " free in /dev/shm: large messages between processes of this "
                                "machine go through sockets; in a container, --shm-size=1g");
    } else {
      Good("shared memory", Bytes(double(facts_.shared_memory.free)) + " free");
    }
  }

  void LookAtCores() {
    const std::string there = ShowNumber("%.3g", facts_.cores);
    if (facts_.cores + 0.01 < facts_.cores_there) {
      Warn("cores", there + " of " + ShowNumber("%.0f", facts_.cores_there) +
                        " may be used (cpu.max of the control group), and each member would start "
                        "a thread for all of them: --threads=" +
                        ShowNumber("%.0f", std::max(1.0, facts_.cores)));
    } else if (here_.servers + here_.workers > 2 * facts_.cores) {
      Warn("cores", there + " for " + std::to_string(here_.servers + here_.workers) +
                        " members: fewer of them would be faster");
    } else {
      Good("cores", there);
    }
    if (!facts_.wide_vectors) {
      Warn("vectors", "this CPU has no AVX2: everything works, several times slower");
    }
    const bool on_host = job_.model.device == "cpu" || !facts_.gpu_trouble.empty();
    if (job_.model.precision == Precision::kBf16 && on_host && !facts_.products_in_bf16) {
      Warn("precision", "model.precision is bf16, and this CPU multiplies in fp32: no faster");
    }
  }

  void LookAtGpu() {
    const std::string& none = facts_.gpu_trouble;
    if (none.empty()) return Good("GPU", "there");
    if (job_.model.device == "cuda" && here_.workers > 0) {
      return Fault("GPU", "model.device is cuda: " + none + ": model.device=cpu would do");
    }
    Good("GPU", "none, so layers are computed on the CPU");
  }

  void LookAtClock() {
    if (facts_.year < 2025) {
      return Warn("clock", "it is the year " + std::to_string(facts_.year) +
                               " here: dates in logs and reports will be wrong");
    }
    if (!facts_.clock_is_set && !here_.all) {
      return Warn(
          "clock",
          "no time server keeps it: lines in logs of several machines will not be in order");
    }
    Good("clock", facts_.clock_is_set ? "kept by a time server" : "not kept by a time server");
  }

  const Job& job_;
  const LocalMembers& here_;
  const MachineFacts& facts_;
  const PlanAnswer* answer_;
  std::vector<Diagnosis> found_;
};

}  // namespace

std::vector<Diagnosis> Diagnose(const Job& job, const LocalMembers& here, const MachineFacts& facts,
                                const PlanAnswer* answer) {
  return Doctor(job, here, facts, answer).Look();
}

}  // namespace hdps
