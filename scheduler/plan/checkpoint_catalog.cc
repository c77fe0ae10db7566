// Manifests of this run, and the search for the one to begin from.
#include "scheduler/plan/checkpoint_catalog.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "common/platform/failpoint.h"

namespace hdps {
namespace {

// A way back through more of them takes longer than it saves.
constexpr size_t kDeltasMax = 16;
// So many bytes of them are read at once, however short the full one is.
constexpr uint64_t kDeltaBytesMin = 4 << 20;

bool HoldsCheckpoint(FileSystem& files, const std::string& root, const std::string& name) {
  return name.starts_with("step_") && files.Exists(JoinPath(JoinPath(root, name), kManifestName));
}

// The job's text with data paths that hold in any working folder, as far as the files are there.
std::string JobForEverywhere(Job job, FileSystem& files) {
  std::vector<std::vector<std::string>*> lists = {&job.data.train, &job.data.eval};
  for (EvalSetSpec& set : job.data.eval_sets) lists.push_back(&set.files);
  for (std::vector<std::string>* paths : lists) {
    for (std::string& path : *paths) {
      const std::string whole = std::filesystem::absolute(path).lexically_normal().string();
      if (files.Exists(whole)) path = whole;
    }
  }
  return PrintJob(job);
}

}  // namespace

CheckpointCatalog::CheckpointCatalog(FileSystem& files, std::string root,
                                     std::shared_ptr<const Job> job)
    : files_(files),
      root_(std::move(root)),
      job_(std::move(job)),
      job_digest_(JobDigest(*job_)),
      tables_digest_(TablesDigest(*job_)) {}

bool CheckpointCatalog::HasAny() const {
  const Result<std::vector<std::string>> names = files_.List(root_);
  return names.ok() && std::any_of(names->begin(), names->end(), [this](const std::string& name) {
           return HoldsCheckpoint(files_, root_, name);
         });
}

Result<std::optional<FoundCheckpoint>> CheckpointCatalog::FindStart() {
  if (!HasAny()) return std::optional<FoundCheckpoint>();
  return Find(std::numeric_limits<Clock>::max());
}

Result<std::optional<FoundCheckpoint>> CheckpointCatalog::FindOlder(const FoundCheckpoint& found,
                                                                    const std::string& fault) {
  refused_.push_back(found.folder + ": " + fault);
  latest_.clear();
  newest_.reset();
  chain_.clear();
  return Find(found.manifest.clock);
}

Result<std::optional<FoundCheckpoint>> CheckpointCatalog::Find(Clock before) {
  Result<FoundCheckpoint> found = FindCheckpoint(files_, root_, before);
  if (!found.ok()) {
    // To begin anew over checkpoints that cannot be read is the operator's decision.
    return Status(Code::kCorruption,
                  found.status().message() +
                      "; to begin from the first step, use another --out or remove " + root_);
  }
  refused_.insert(refused_.end(), found->refused.begin(), found->refused.end());
  if (found->manifest.job_digest != job_digest_) {
    const std::string& other = found->manifest.job_name;
    return Status(Code::kInvalidArgument,
                  found->folder + " is the checkpoint of another job: " +
                      (other == job_->name ? "also called '" + other + "', with other settings"
                                           : "'" + other + "', not '" + job_->name + "'") +
                      "; give this job another --out, or remove the old checkpoint");
  }
  if (found->manifest.tables_digest != tables_digest_) {
    return Status(Code::kInvalidArgument,
                  found->folder +
                      " holds the tables of another job: number of shards, tables or "
                      "rules differ; give this job another --out");
  }
  latest_ = found->folder;
  chain_.clear();
  for (const CheckpointPart& part : found->chain) chain_.push_back(LinkOf(part.manifest));
  newest_ = *std::move(found);
  return newest_;
}

CheckpointCatalog::Link CheckpointCatalog::LinkOf(const Manifest& manifest) {
  Link link{manifest.clock, ManifestChecksum(manifest), 0};
  for (const SavedFile& file : manifest.files) link.bytes += file.bytes;
  return link;
}

std::string CheckpointCatalog::FolderOf(Clock clock) const {
  const std::string name = CheckpointName(clock);
  return HoldsCheckpoint(files_, root_, name) ? JoinPath(root_, name) : "";
}

Clock CheckpointCatalog::DeltaBase() const {
  if (chain_.empty() || chain_.size() > kDeltasMax) return 0;
  uint64_t delta_bytes = 0;
  for (size_t at = 1; at < chain_.size(); ++at) delta_bytes += chain_[at].bytes;
  return delta_bytes > std::max(chain_[0].bytes / 2, kDeltaBytesMin) ? 0 : chain_.back().clock;
}

Result<std::string> CheckpointCatalog::Prepare(Clock clock, Clock since) {
  const std::string folder = JoinPath(root_, CheckpointName(clock));
  // What an interrupted save left behind is no checkpoint, and no file of it is used again.
  HDPS_RETURN_IF_ERROR(files_.RemoveAll(folder));
  HDPS_RETURN_IF_ERROR(since > 0 ? files_.MakeDirectoriesUnsynced(folder)
                                 : files_.MakeDirectories(folder));
  HDPS_FAILPOINT_OR_RETURN("checkpoint.prepared");
  return folder;
}

void CheckpointCatalog::Discard(Clock clock) {
  const std::string folder = JoinPath(root_, CheckpointName(clock));
  const Status removed = files_.RemoveAll(folder);
  LOG_IF(WARNING, !removed.ok()) << removed.message();
}

Status CheckpointCatalog::Commit(Manifest manifest) {
  const std::string folder = JoinPath(root_, CheckpointName(manifest.clock));
  if (job_text_.empty()) job_text_ = JobForEverywhere(*job_, files_);
  std::ranges::sort(manifest.files, {}, &SavedFile::name);
  manifest.job_name = job_->name;
  manifest.job_digest = job_digest_;
  manifest.tables_digest = tables_digest_;
  manifest.num_shards = job_->cluster.shards;
  manifest.job_json = job_text_;
  const bool is_delta = std::ranges::any_of(manifest.files, HoldsChanges);
  if (is_delta && !chain_.empty()) {
    manifest.base_clock = chain_.back().clock;
    manifest.base_checksum = chain_.back().checksum;
  }
  HDPS_FAILPOINT_OR_RETURN("checkpoint.before_manifest");
  HDPS_RETURN_IF_ERROR(WriteManifest(files_, folder, manifest));
  HDPS_FAILPOINT_OR_RETURN("checkpoint.manifest_written");
  latest_ = folder;
  if (!is_delta) chain_.clear();
  chain_.push_back(LinkOf(manifest));
  newest_ = FoundCheckpoint{.folder = folder, .manifest = std::move(manifest), .refused = {}};
  // A delta makes none superfluous.
  if (is_delta) return {};
  // That older ones cannot be removed does not make this one less whole.
  const Clock best =
      job_->checkpoint.keep_best ? newest_->manifest.watched.best.best_clock : kNoClock;
  const Status pruned = PruneCheckpoints(files_, root_, job_->checkpoint.keep, best);
  LOG_IF(WARNING, !pruned.ok()) << pruned.message();
  HDPS_FAILPOINT("checkpoint.pruned");
  return {};
}

std::string OtherArithmetic(const Manifest& manifest, const std::set<std::string>& now) {
  const std::set<std::string> before(manifest.arithmetic.begin(), manifest.arithmetic.end());
  if (before.empty() || before == now) return "";
  const auto joined = [](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
    return text;
  };
  return "the checkpoint was trained with " + joined(before) + ", this run computes with " +
         joined(now) +
         ": digests depend on the CPU's vector width through the matrix library, so the result "
         "will differ in its last bits from that of a run on one kind of CPU";
}

}  // namespace hdps
