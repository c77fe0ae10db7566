// Writes the manifests of this run, and searches for the checkpoint to resume from.
#include "scheduler/plan/checkpoint_catalog.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/table_slices.h"
#include "common/job/vocabulary.h"
#include "common/platform/failpoint.h"

namespace hdps {
namespace {

// Largest number of deltas: loading more of them would take longer than they save.
constexpr size_t kDeltasMax = 16;
// Deltas of this size together are accepted, however small the full checkpoint is.
constexpr uint64_t kDeltaBytesMin = 4 << 20;

bool HoldsCheckpoint(FileSystem& files, const std::string& root, const std::string& name) {
  return name.starts_with("step_") && files.Exists(JoinPath(JoinPath(root, name), kManifestName));
}

// Returns the job's text with data paths that are valid from any working folder, for files that
// exist.
std::string JobForEverywhere(Job job, FileSystem& files) {
  std::vector<std::vector<std::string>*> lists = {&job.data.train, &job.data.eval};
  for (EvalSetSpec& set : job.data.eval_sets) lists.push_back(&set.files);
  const auto whole_path = [&files](std::string* path) {
    const std::string whole = std::filesystem::absolute(*path).lexically_normal().string();
    if (files.Exists(whole)) *path = whole;
  };
  for (std::vector<std::string>* paths : lists) {
    for (std::string& path : *paths) whole_path(&path);
  }
  if (!job.data.vocabulary.file.empty()) whole_path(&job.data.vocabulary.file);
  return PrintJob(job);
}

// Returns the flag that sets all of them to the checkpoint's values; empty if it would be long.
std::string SetBack(const std::vector<SettingDifference>& differences) {
  constexpr size_t kToldMax = 3;
  if (differences.size() > kToldMax) return "";
  std::string flag;
  for (const SettingDifference& one : differences) {
    // Settings made by a recipe do not stand in the job file, and long values are shown only in
    // part.
    const bool made = one.path.starts_with("model.tables.") || one.path.starts_with("model.layers");
    if (made || !one.item.empty() || one.there.find(' ') != std::string::npos ||
        one.there.ends_with("...")) {
      return "";
    }
    flag += (flag.empty() ? "--set=" : ",") + one.path + "=" + one.there;
  }
  return flag;
}

}  // namespace

CheckpointCatalog::CheckpointCatalog(FileSystem& files, std::string root,
                                     std::shared_ptr<const Job> job, Resume resume)
    : files_(files),
      root_(std::move(root)),
      job_(std::move(job)),
      resume_(resume),
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
    // Starting anew over checkpoints that cannot be read is the operator's decision.
    return Status(Code::kCorruption,
                  found.status().message() +
                      "; to begin from the first step, use another --out or remove " + root_);
  }
  refused_.insert(refused_.end(), found->refused.begin(), found->refused.end());
  chain_.clear();
  for (const CheckpointPart& part : found->chain) chain_.push_back(LinkOf(part.manifest));
  HDPS_RETURN_IF_ERROR(Adopt(&*found));
  latest_ = found->folder;
  newest_ = *std::move(found);
  return newest_;
}

Status CheckpointCatalog::Adopt(FoundCheckpoint* found) {
  Manifest& manifest = found->manifest;
  changes_ = manifest.changes;
  if (manifest.job_digest == job_digest_ && manifest.tables_digest == tables_digest_) return {};
  const auto differences = DifferencesFrom(*job_, manifest.job_json, JobPart::kWhole);
  const Result<Job> before =
      ParseJob(manifest.job_json, found->folder, {}, RegistryOf(job_->model));
  if (!differences.ok() || !before.ok() || resume_ != Resume::kChanged ||
      !std::ranges::all_of(*differences, &SettingDifference::may_change)) {
    return RefuseOther(*found, differences.ok() ? *differences : std::vector<SettingDifference>());
  }
  for (size_t t = 0; t < job_->tables.size(); ++t) {
    const TableSpec &here = job_->tables[t], &there = before->tables[t];
    const std::string why = WhyNotRecut(there, here);
    if (why.empty()) continue;
    return {Code::kInvalidArgument, found->folder + ": table '" + here.name +
                                        "' cannot go from slice_mode " +
                                        std::string(WordOf(there.slice_mode)) + " to " +
                                        std::string(WordOf(here.slice_mode)) + ": " + why +
                                        "; set slice_mode back, or give this job another --out"};
  }
  std::string told;
  for (const SettingDifference& one : *differences) {
    changes_.push_back({manifest.clock, one.Place(), one.there, one.here});
    told += (told.empty() ? "" : "; ") + one.Place() + " is " + one.here + ", was " + one.there;
  }
  notices_.push_back("from step " + std::to_string(manifest.clock) +
                     " on the job is another, as --resume=changed says: " + told);
  MovePosition(*before, &manifest);
  chain_.clear();  // The next save builds on nothing.
  return {};
}

Status CheckpointCatalog::RefuseOther(const FoundCheckpoint& found,
                                      const std::vector<SettingDifference>& differences) const {
  const std::string& other = found.manifest.job_name;
  std::string text = found.folder + " is the checkpoint of another job, " +
                     (other == job_->name ? "also called '" + other + "', with other settings"
                                          : "'" + other + "', not '" + job_->name + "'");
  if (differences.empty()) {  // Of a version with other settings.
    return {Code::kInvalidArgument,
            text + "; give this job another --out, or remove the old checkpoint"};
  }
  text += ": " + TellDifferences(differences) + ". Set back what was not meant";
  if (const std::string back = SetBack(differences); !back.empty()) text += " (" + back + ")";
  text += ", or give this job another --out";
  const auto fixed = std::ranges::find(differences, false, &SettingDifference::may_change);
  if (fixed == differences.end()) {
    return {Code::kInvalidArgument,
            text + ", or go on from the checkpoint with the new settings by --resume=changed"};
  }
  return {Code::kInvalidArgument,
          text + "; --resume=changed does not help, for " + fixed->Place() + " stays what it was"};
}

// Converts the position in the epoch: the same number of rows takes another number of steps.
void CheckpointCatalog::MovePosition(const Job& before, Manifest* manifest) {
  const auto steps = static_cast<uint64_t>(manifest->clock - manifest->epoch_start);
  const uint64_t batch = job_->train.batch_size;
  const bool same_rows = before.data.shuffle_rows == job_->data.shuffle_rows &&
                         before.data.negatives == job_->data.negatives;
  if (steps == 0 || (same_rows && before.train.batch_size == batch)) return;
  const uint64_t rows = steps * before.train.batch_size;
  const auto clock = static_cast<uint64_t>(manifest->clock);
  if (same_rows && rows % batch == 0 && rows / batch <= clock) {
    manifest->epoch_start = static_cast<Clock>(clock - rows / batch);
    return;
  }
  manifest->epoch_start = manifest->clock;
  manifest->epoch_sums = {};
  notices_.push_back(
      "epoch " + std::to_string(manifest->epoch + 1) + " begins anew: of it " +
      std::to_string(rows) + " rows were trained, " +
      (same_rows ? "which is no place between two steps of " + std::to_string(batch) + " rows"
                 : "in another order than the one of data.shuffle_rows and data.negatives now"));
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
  // Leftovers of an interrupted save are never used again.
  HDPS_RETURN_IF_ERROR(files_.RemoveAll(folder));
  HDPS_RETURN_IF_ERROR(since > 0 ? files_.MakeDirectoriesUnsynced(folder)
                                 : files_.MakeDirectories(folder));
  HDPS_FAILPOINT_OR_RETURN("checkpoint.prepared");
  preparing_ = clock;
  return folder;
}

void CheckpointCatalog::Discard(Clock clock) {
  preparing_.reset();
  const std::string folder = JoinPath(root_, CheckpointName(clock));
  const Status removed = files_.RemoveAll(folder);
  LOG_IF(WARNING, !removed.ok()) << removed.message();
}

// Who has the checkpoint can so score rows without the job's other files.
Status CheckpointCatalog::CopyVocabulary(const std::string& folder) const {
  const std::string& file = job_->data.vocabulary.file;
  if (file.empty()) return {};
  const Result<std::string> bytes =
      ReadWholeFile(files_, file, std::numeric_limits<int64_t>::max());
  if (!bytes.ok()) {
    LOG(WARNING) << "the checkpoint has no copy of the vocabulary (data.vocabulary.file), so rows "
                 << "are scored with that file alone: " << bytes.status().message();
    return {};
  }
  return WriteFileAtomically(files_, JoinPath(folder, kVocabularyName), *bytes);
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
  manifest.changes = changes_;
  const bool is_delta = std::ranges::any_of(manifest.files, HoldsChanges);
  if (is_delta && !chain_.empty()) {
    manifest.base_clock = chain_.back().clock;
    manifest.base_checksum = chain_.back().checksum;
  }
  if (!is_delta) HDPS_RETURN_IF_ERROR(CopyVocabulary(folder));
  HDPS_FAILPOINT_OR_RETURN("checkpoint.before_manifest");
  HDPS_RETURN_IF_ERROR(WriteManifest(files_, folder, manifest));
  HDPS_FAILPOINT_OR_RETURN("checkpoint.manifest_written");
  latest_ = folder;
  ++saves_;
  preparing_.reset();
  if (!is_delta) chain_.clear();
  chain_.push_back(LinkOf(manifest));
  newest_ = FoundCheckpoint{.folder = folder, .manifest = std::move(manifest), .refused = {}};
  // A delta makes no other checkpoint superfluous.
  if (is_delta) return {};
  RemoveOld();
  HDPS_FAILPOINT("checkpoint.pruned");
  return {};
}

void CheckpointCatalog::RemoveOld() const {
  const Clock best =
      job_->checkpoint.keep_best ? newest_->manifest.watched.best.best_clock : kNoClock;
  const Status pruned = PruneCheckpoints(files_, root_, job_->checkpoint.keep, best, held_);
  LOG_IF(WARNING, !pruned.ok()) << pruned.message();
}

void CheckpointCatalog::Hold(const std::set<Clock>& held) {
  const bool released = !std::ranges::includes(held, held_);
  held_ = held;
  // Before this process has saved, the folder stays as it was found.
  if (released && saves_ > 0 && newest_) RemoveOld();
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
