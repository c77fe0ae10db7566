// Fetches manifests first, then the files of those checkpoints that are wanted, and verifies them.
#include "common/protocol/checkpoints/fetched_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/byte_count.h"
#include "common/base/show_number.h"
#include "common/platform/folders/temporary_folder.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/checkpoints/checkpoint_search.h"
#include "common/protocol/checkpoints/rclone.h"

namespace hdps {
namespace {

using Kind = WantedCopies::Kind;

// A list takes minutes only where the storage does not answer. Files may take a day.
constexpr int64_t kListLimitMs = 300'000, kFilesLimitMs = 86'400'000;

// Returns the last name of a path, after its last slash or the colon of the remote.
std::string LastName(const std::string& path) { return path.substr(path.find_last_of("/:") + 1); }

class Fetch {
 public:
  Fetch(FileSystem& files, Programs& programs, std::string remote, std::string folder,
        const std::function<void(const std::string&)>& tell)
      : files_(files),
        programs_(programs),
        remote_(std::move(remote)),
        folder_(std::move(folder)),
        root_(JoinPath(folder_, "checkpoint")),
        tell_(tell) {
    while (remote_.size() > 1 && remote_.ends_with('/')) remote_.pop_back();
    from_ = remote_;
  }

  Result<std::string> Run(WantedCopies wanted) {
    const int64_t begin = clock_->NowMs();
    const std::optional<Clock> own = ClockOfName(LastName(remote_));
    if (own) {
      wanted = {Kind::kStep, *own};
      from_ = remote_.substr(0, remote_.size() - LastName(remote_).size());
      while (from_.size() > 1 && from_.ends_with('/')) from_.pop_back();
    }
    HDPS_RETURN_IF_ERROR(List());
    HDPS_RETURN_IF_ERROR(FetchManifests());
    HDPS_ASSIGN_OR_RETURN(const std::set<Clock> clocks, Choose(wanted));
    HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, FetchFiles(clocks));
    if (wanted.kind != Kind::kAll) HDPS_RETURN_IF_ERROR(Verify(clocks));
    tell_("fetched " + ShowByteCount(bytes) + " from " + remote_ + " in " +
          ShowNumber("%.1f", static_cast<double>(clock_->NowMs() - begin) / 1000) + " s");
    return own ? JoinPath(root_, CheckpointName(*own)) : folder_;
  }

 private:
  // Runs rclone; `what` begins the message of a failure.
  Result<ProgramEnd> Rclone(const std::vector<std::string>& words, int64_t limit_ms) {
    const auto progress = [this](const std::string& told) { tell_(remote_ + ": " + told); };
    HDPS_ASSIGN_OR_RETURN(ProgramEnd end, RunRclone(programs_, words, limit_ms, progress));
    if (end.status == 0) return end;
    const bool mistake = IsNothingThere(end.status) || end.status == 1 || end.status == kNoRclone;
    return Status(mistake ? Code::kInvalidArgument : Code::kIoError,
                  remote_ + ": " + RcloneFault(end) + "; try " + RcloneText({"lsf", remote_}));
  }

  // Finds out which files of which checkpoints there are.
  Status List() {
    HDPS_ASSIGN_OR_RETURN(const ProgramEnd end,
                          Rclone({"lsf", "--recursive", "--files-only", "--format=sp",
                                  "--separator=;", "--max-depth=3", "--", from_},
                                 kListLimitMs));
    if (end.output_cut) return Wrong("has too many files; name the folder of the checkpoints");
    bool inner = false;
    for (size_t at = 0; at < end.output.size();) {
      const size_t to = std::min(end.output.find('\n', at), end.output.size());
      const std::string line = end.output.substr(at, to - at);
      at = to + 1;
      const size_t separator = line.find(';');
      uint64_t bytes = 0;
      if (std::from_chars(line.data(), line.data() + line.size(), bytes).ec != std::errc())
        continue;
      std::string path = line.substr(std::min(separator, line.size() - 1) + 1);
      const bool below = path.starts_with("checkpoint/");
      if (below) path.erase(0, std::string("checkpoint/").size());
      const size_t slash = path.find('/');
      if (slash == std::string::npos || path.find('/', slash + 1) != std::string::npos) continue;
      const std::optional<Clock> clock = ClockOfName(path.substr(0, slash));
      if (!clock) continue;
      inner |= below;
      auto& there = below ? below_ : beside_;
      there[*clock][path.substr(slash + 1)] = bytes;
    }
    if (inner) {
      beside_ = std::move(below_);
      from_ = JoinRemote(from_, "checkpoint");
    }
    std::erase_if(beside_, [](const auto& one) { return one.second.count(kManifestName) == 0; });
    if (beside_.empty()) return Wrong("there is no whole checkpoint");
    return {};
  }

  Status FetchManifests() {
    HDPS_RETURN_IF_ERROR(files_.MakeDirectories(root_));
    return Rclone({"copy", std::string("--include=/step_*/") + kManifestName, "--", from_, root_},
                  kListLimitMs)
        .status();
  }

  // Returns the clocks of the wanted checkpoints and of all that they build on.
  Result<std::set<Clock>> Choose(const WantedCopies& wanted) {
    std::set<Clock> clocks;
    if (wanted.kind == Kind::kAll) {
      for (const auto& [clock, names] : beside_) clocks.insert(clock);
      return clocks;
    }
    Clock target = wanted.kind == Kind::kStep ? wanted.step : beside_.rbegin()->first;
    if (beside_.count(target) == 0) {
      return Wrong("there is no whole checkpoint of step " + std::to_string(target));
    }
    HDPS_RETURN_IF_ERROR(AddChain(target, &clocks));
    if (wanted.kind != Kind::kBest) return clocks;
    HDPS_ASSIGN_OR_RETURN(const Manifest newest, ReadManifest(files_, LocalOf(target)));
    const Clock best = newest.watched.best.best_clock;
    if (best >= 0 && beside_.count(best) > 0) HDPS_RETURN_IF_ERROR(AddChain(best, &clocks));
    return clocks;
  }

  Status AddChain(Clock clock, std::set<Clock>* clocks) {
    const Result<std::vector<CheckpointPart>> chain = ReadChain(files_, LocalOf(clock));
    if (!chain.ok()) return Named(chain.status());
    for (const CheckpointPart& part : *chain) clocks->insert(part.manifest.clock);
    return {};
  }

  Result<uint64_t> FetchFiles(const std::set<Clock>& clocks) {
    uint64_t bytes = 0;
    for (const Clock clock : clocks) {
      for (const auto& [name, size] : beside_[clock]) bytes += size;
    }
    const uint64_t room = FreeBytes(root_);
    if (bytes > room) {
      return Status(Code::kInvalidArgument, remote_ + " takes " + ShowByteCount(bytes) + ", and " +
                                                folder_ + " has room for " + ShowByteCount(room) +
                                                "; set $TMPDIR to a folder with more");
    }
    tell_("fetches " + ShowByteCount(bytes) + " from " + remote_ + " into " + folder_);
    std::vector<std::string> words = {"copy"};
    for (const Clock clock : clocks) words.push_back("--include=/" + CheckpointName(clock) + "/**");
    words.insert(words.end(), {"--", from_, root_});
    HDPS_RETURN_IF_ERROR(Rclone(words, kFilesLimitMs).status());
    // Manifests of what was not fetched would be checkpoints without files.
    for (const auto& [clock, names] : beside_) {
      if (clocks.count(clock) == 0) HDPS_RETURN_IF_ERROR(files_.RemoveAll(LocalOf(clock)));
    }
    return bytes;
  }

  Status Verify(const std::set<Clock>& clocks) {
    for (const Clock clock : clocks) {
      const std::string folder = LocalOf(clock);
      const Result<Manifest> manifest = ReadManifest(files_, folder);
      if (!manifest.ok()) return Named(manifest.status());
      const Status whole = VerifyCheckpoint(files_, folder, *manifest);
      if (!whole.ok()) return Named(whole);
    }
    return {};
  }

  std::string LocalOf(Clock clock) const { return JoinPath(root_, CheckpointName(clock)); }
  Status Wrong(const std::string& what) const {
    return {Code::kInvalidArgument, remote_ + ": " + what +
                                        "; expected a checkpoint, or the "
                                        "folder of a run's checkpoints, as rclone lsf shows it"};
  }
  // Names the places there in place of those here, which nobody has heard of.
  Status Named(const Status& status) const {
    std::string message = status.message();
    for (size_t at = 0; (at = message.find(root_, at)) != std::string::npos;) {
      message.replace(at, root_.size(), from_);
      at += from_.size();
    }
    return {Code::kCorruption,
            message + "; another step of it may be whole: " + RcloneText({"lsf", from_})};
  }

  FileSystem& files_;
  Programs& programs_;
  std::string remote_;
  const std::string folder_, root_;
  const std::function<void(const std::string&)>& tell_;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::string from_;  // The folder of checkpoints there.
  // Files and bytes of each checkpoint there, in `from_` and in the folder checkpoint below it.
  std::map<Clock, std::map<std::string, uint64_t>> beside_, below_;
};

}  // namespace

Result<std::string> FetchCheckpoint(FileSystem& files, Programs& programs,
                                    const std::string& remote, const WantedCopies& wanted,
                                    const std::string& folder,
                                    const std::function<void(const std::string&)>& tell) {
  return Fetch(files, programs, remote, folder, tell).Run(wanted);
}

}  // namespace hdps
