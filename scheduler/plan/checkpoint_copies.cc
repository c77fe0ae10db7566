// Chooses what is copied or removed next, and takes each folder through its steps.
#include "scheduler/plan/checkpoint_copies.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/outside_text.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/protocol/checkpoints/checkpoint_search.h"
#include "common/protocol/checkpoints/rclone.h"
#include "common/protocol/manifest.h"
#include "scheduler/members/time_text.h"

namespace hdps {
namespace {

constexpr uint64_t kManifestBytesMax = 64 << 20;
constexpr int64_t kStartLimitMs = 60'000;
constexpr const char* kOwnName = "copied_to";  // File of the folder there that is this run's.
// First and longest wait before a failure after the last save is tried again.
constexpr TimeMs kAgainMs = 1000, kAgainMsMax = 30'000;

std::string AtStep(Clock clock) { return "step " + std::to_string(clock); }

}  // namespace

CheckpointCopies::CheckpointCopies(FileSystem& files, Programs* programs, std::string root,
                                   const CheckpointSpec& settings)
    : files_(files),
      programs_(programs),
      root_(std::move(root)),
      copy_to_(settings.copy_to),
      wait_ms_(TimeMs{1000} * settings.copy_wait_s) {}

CheckpointCopies::~CheckpointCopies() = default;

Status CheckpointCopies::CheckStart(const std::optional<FoundCheckpoint>& newest) {
  if (!on()) return {};
  const std::vector<std::string> words = {
      "lsf",           "--dirs-only", "--retries=1", "--low-level-retries=1", "--contimeout=10s",
      "--timeout=20s", "--",          copy_to_};
  const std::string place = "checkpoint.copy_to: \"" + copy_to_ + "\": ";
  const std::string mend =
      "; rclone config makes remotes, rclone listremotes shows them, and this must work: " +
      RcloneText({"lsf", copy_to_});
  const Result<ProgramEnd> end = RunRclone(*programs_, words, kStartLimitMs);
  const bool nothing = end.ok() && IsNothingThere(end->status);
  if (!end.ok() || (end->status != 0 && !nothing)) {
    const std::string fault = end.ok() ? RcloneFault(*end) : end.status().message();
    // A run that has begun outlives a failure of the network, but not a mistake.
    const bool mistake =
        end.ok() ? end->status == kNoRclone || fault.find("create file system") != fault.npos
                 : end.status().code() == Code::kInvalidArgument;
    if (mistake || !newest) return Status(Code::kInvalidArgument, place + fault + mend);
    warnings_.push_back(place + fault + "; it is tried again with the first copy");
    return {};
  }
  std::optional<Clock> last;
  const bool own = newest && IsOwn();
  if (!nothing) {
    for (size_t at = 0; at < end->output.size();) {
      const size_t to = std::min(end->output.find('\n', at), end->output.size());
      std::string name = end->output.substr(at, to - at);
      at = to + 1;
      while (name.ends_with('/')) name.pop_back();
      const std::optional<Clock> clock = ClockOfName(name);
      if (!clock) continue;
      last = std::max(last.value_or(0), *clock);
      if (own) left_.insert(*clock);
    }
  }
  if (!last) NoteOwn();
  if (!last || (newest && *last <= newest->manifest.clock)) return {};
  const std::string found = place + "it holds " + CheckpointName(*last) + ", which is newer than " +
                            (newest ? "what this run has" : "this run") + ", so ";
  if (!newest) {
    return Status(Code::kInvalidArgument,
                  found +
                      "another run's; give this run a path of its own, or begin it from there "
                      "(--init) with another path for its copies");
  }
  warnings_.push_back(found +
                      "commands take that one until this run has passed it; remove it "
                      "if it is another run's: " +
                      RcloneText({"purge", JoinRemote(copy_to_, CheckpointName(*last))}));
  return {};
}

// Only of a folder that was empty when this run first looked does it know that all there is its
// own, and may be removed.
void CheckpointCopies::NoteOwn() const {
  const Status noted = WriteFileAtomically(files_, JoinPath(root_, kOwnName), copy_to_);
  LOG_IF(WARNING, !noted.ok()) << noted.message();
}

bool CheckpointCopies::IsOwn() const {
  constexpr uint64_t kPathBytesMax = 1 << 16;
  const Result<std::string> noted = ReadWholeFile(files_, JoinPath(root_, kOwnName), kPathBytesMax);
  return noted.ok() && *noted == copy_to_;
}

void CheckpointCopies::OnTick(uint64_t saves, TimeMs now) {
  if (!on()) return;
  if (saves != saves_) due_ = true;
  saves_ = saves;
  if (ends_at_ && now >= *ends_at_ && !idle()) {
    const std::string lost = BreakOff();
    if (lost.empty()) return;
    warnings_.push_back(lost + "; checkpoint.copy_wait_s is over. By hand: " +
                        RcloneText({"copy", root_, copy_to_}) +
                        (trouble_.empty() ? std::string() : ". The last failure: " + trouble_));
    return;
  }
  if (again_at_ && now >= *again_at_) {
    again_at_.reset();
    due_ = true;
  }
  if (task_) {
    const std::optional<ProgramEnd> end = program_->Wait(0);
    if (!end) return;
    program_.reset();
    OnEnd(*end, now);
  }
  if (!task_ && due_) Choose(now);
}

std::map<Clock, CheckpointCopies::Local> CheckpointCopies::ReadLocal() const {
  std::map<Clock, Local> local;
  for (const Clock clock : ClocksUnder(files_, root_)) {
    const Result<Manifest> manifest = ReadManifest(files_, LocalFolder(clock));
    if (!manifest.ok() || manifest->clock != clock) continue;  // It is no checkpoint, or not yet.
    Local& one = local[clock];
    one.checksum = ManifestChecksum(*manifest);
    if (manifest->is_delta()) one.base = manifest->base_clock;
    one.base_checksum = manifest->base_checksum;
  }
  return local;
}

std::vector<Clock> CheckpointCopies::ChainOf(const std::map<Clock, Local>& local, Clock clock) {
  std::vector<Clock> chain;
  for (std::optional<Clock> at = clock; at;) {
    const auto part = local.find(*at);
    chain.push_back(*at);
    if (part == local.end()) return {};
    const std::optional<Clock> base = part->second.base;
    if (base) {
      const auto below = local.find(*base);
      if (*base >= *at || below == local.end()) return {};
      if (below->second.checksum != part->second.base_checksum) return {};
    }
    at = base;
  }
  std::ranges::reverse(chain);
  return chain;
}

// The order matters: copies go only after the newest checkpoint is there, and a delta before what
// it builds on.
void CheckpointCopies::Choose(TimeMs now) {
  due_ = false;
  const std::map<Clock, Local> local = ReadLocal();
  for (auto one = local.rbegin(); one != local.rend(); ++one) {
    if (ChainOf(local, one->first).empty()) continue;
    if (CopyPartOf(local, one->first, now)) return;
    break;
  }
  if (local.empty()) return;
  std::set<Clock> removed = left_;
  for (const auto& one : there_) removed.insert(one.first);
  for (auto clock = removed.rbegin(); clock != removed.rend(); ++clock) {
    if (local.count(*clock) > 0) continue;
    task_ = Task{.step = Step::kUnlist, .clock = *clock};
    return Run(Step::kUnlist, now);
  }
  for (auto one = local.rbegin(); one != local.rend(); ++one) {
    if (CopyPartOf(local, one->first, now)) return;
  }
  held_.clear();
  trouble_.clear();
}

// Begins to copy the first part of a checkpoint that is not there; returns false if all are.
bool CheckpointCopies::CopyPartOf(const std::map<Clock, Local>& local, Clock clock, TimeMs now) {
  const std::vector<Clock> chain = ChainOf(local, clock);
  for (const Clock part : chain) {
    const uint64_t checksum = local.at(part).checksum;
    const auto known = there_.find(part);
    if (known != there_.end() && known->second == checksum) continue;
    held_ = std::set<Clock>(chain.begin(), chain.end());
    BeginCopy(part, checksum, now);
    return true;
  }
  return false;
}

void CheckpointCopies::BeginCopy(Clock clock, uint64_t checksum, TimeMs now) {
  task_ = Task{.step = Step::kCompare, .clock = clock, .checksum = checksum, .began = now};
  task_->command = RcloneText({"copy", LocalFolder(clock), FolderThere(clock)});
  Result<std::string> text =
      ReadWholeFile(files_, JoinPath(LocalFolder(clock), kManifestName), kManifestBytesMax);
  if (!text.ok()) return Fail(text.status().message(), now);
  task_->manifest = *std::move(text);
  Run(Step::kCompare, now);
}

std::vector<std::string> CheckpointCopies::WordsOf(Step step) const {
  const std::string here = LocalFolder(task_->clock), there = FolderThere(task_->clock);
  const std::string only = std::string("/") + kManifestName;
  switch (step) {
    case Step::kCompare:
      return {"cat", "--include=" + only, "--", there};
    case Step::kUncover:
    case Step::kUnlist:
      return {"delete", "--include=" + only, "--", there};
    case Step::kFiles:
      // What lies there without this manifest is of another save, whatever its times say.
      return {"copy", "--ignore-times", "--exclude=" + only, "--", here, there};
    case Step::kManifest:
      return {"copyto", "--ignore-times", "--", JoinPath(here, kManifestName),
              JoinRemote(there, kManifestName)};
    case Step::kPurge:
      return {"purge", "--", there};
  }
  return {};
}

void CheckpointCopies::Run(Step step, TimeMs now) {
  task_->step = step;
  const std::vector<std::string> words = WordsOf(step);
  task_->command = RcloneText(words);
  Result<std::unique_ptr<RunningProgram>> program =
      programs_->Start(RcloneCommand(RclonePriority::kBehind, words));
  if (!program.ok()) return Fail(program.status().message(), now);
  program_ = *std::move(program);
}

void CheckpointCopies::OnEnd(const ProgramEnd& end, TimeMs now) {
  const bool done = end.status == 0;
  const Step step = task_->step;
  if (step == Step::kCompare) return OnCompared(end, now);
  if (!done && (step == Step::kFiles || step == Step::kManifest)) {
    if (Unchanged()) return Fail(RcloneFault(end), now);
  } else if (!done && !IsNothingThere(end.status)) {
    return Fail(RcloneFault(end), now);
  }
  switch (step) {
    case Step::kCompare:
      return;
    case Step::kUncover:
      there_.erase(task_->clock);
      return Run(Step::kFiles, now);
    case Step::kFiles:
      if (Unchanged()) return Run(Step::kManifest, now);
      break;
    case Step::kManifest:
      if (done && Unchanged()) return Copied(now);
      break;
    case Step::kUnlist:
      return Run(Step::kPurge, now);
    case Step::kPurge:
      there_.erase(task_->clock);
      left_.erase(task_->clock);
      break;
  }
  task_.reset();
  due_ = true;
}

void CheckpointCopies::OnCompared(const ProgramEnd& end, TimeMs now) {
  const bool none = IsNothingThere(end.status) || (end.status == 0 && end.output.empty());
  if (none) return Run(Step::kFiles, now);
  if (end.status != 0) return Fail(RcloneFault(end), now);
  if (end.output == task_->manifest) return Copied(now);
  Run(Step::kUncover, now);
}

void CheckpointCopies::Copied(TimeMs now) {
  there_[task_->clock] = task_->checksum;
  figures_.step = there_.rbegin()->first;
  if (task_->step == Step::kManifest) {
    figures_.seconds = static_cast<double>(now - task_->began) / 1000;
    LOG(INFO) << "copied the checkpoint of " << AtStep(task_->clock) << " to "
              << FolderThere(task_->clock) << " in " << figures_.seconds << " s";
  }
  task_.reset();
  due_ = true;
}

void CheckpointCopies::Fail(const std::string& fault, TimeMs now) {
  ++figures_.failures;
  const bool removes = task_->step == Step::kUnlist || task_->step == Step::kPurge;
  trouble_ = std::string(removes ? "the removal of the copy" : "the copy") + " of " +
             AtStep(task_->clock) + " at " + copy_to_ +
             " fails: " + EscapeUntrusted(fault, std::string::npos);
  std::string next = "it is tried again at the next save";
  if (ends_at_) {
    again_ms_ = std::clamp(2 * again_ms_, kAgainMs, kAgainMsMax);
    again_at_ = now + again_ms_;
    next = "it is tried again in " + SecondsOf(again_ms_);
  }
  warnings_.push_back(trouble_ + "; " + next + ". By hand: " + task_->command);
  task_.reset();
  held_.clear();
}

std::string CheckpointCopies::Finish(TimeMs now) {
  if (!on()) return "";
  ends_at_ = now + wait_ms_;
  if (task_) {
    due_ = true;
  } else {
    Choose(now);
  }
  if (idle()) return "";
  return "waits for the copies of checkpoints at " + copy_to_ + ", for up to " +
         SecondsOf(wait_ms_) + " (checkpoint.copy_wait_s)";
}

std::string CheckpointCopies::Done() const {
  if (!trouble_.empty() || !figures_.step) return "";  // A warning has said it.
  return "the copy of " + AtStep(*figures_.step) + " is at " + copy_to_;
}

std::string CheckpointCopies::BreakOff() {
  std::string text;
  if (task_ || !trouble_.empty()) {
    text = "the copies of checkpoints at " + copy_to_ + " are not complete: ";
    text += figures_.step ? "the newest there is that of " + AtStep(*figures_.step)
                          : "none of this process is there";
    if (task_) text += ", and that of " + AtStep(task_->clock) + " is broken off";
  }
  program_.reset();
  task_.reset();
  again_at_.reset();
  due_ = false;
  held_.clear();
  return text;
}

std::string CheckpointCopies::Progress() const {
  if (!task_ || program_ == nullptr) return "";
  std::string text = "copy of " + AtStep(task_->clock) + " to " + copy_to_;
  const std::string told = RcloneProgress(program_->LastLine());
  return told.empty() ? text : text + ": " + told;
}

bool CheckpointCopies::Unchanged() const {
  const Result<std::string> text =
      ReadWholeFile(files_, JoinPath(LocalFolder(task_->clock), kManifestName), kManifestBytesMax);
  return text.ok() && *text == task_->manifest;
}

std::string CheckpointCopies::LocalFolder(Clock clock) const {
  return JoinPath(root_, CheckpointName(clock));
}

std::string CheckpointCopies::FolderThere(Clock clock) const {
  return JoinRemote(copy_to_, CheckpointName(clock));
}

}  // namespace hdps
