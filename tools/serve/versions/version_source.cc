// Lists the folder, and walks from a delta down to the version at hand.
#include "tools/serve/versions/version_source.h"

#include <algorithm>
#include <charconv>

#include "common/protocol/checkpoints/checkpoint_search.h"

namespace hdps {
namespace {

std::string ManifestIn(const std::string& folder) { return JoinPath(folder, kManifestName); }

}  // namespace

std::string ListedSteps(const std::vector<Clock>& steps) {
  std::string text;
  for (const Clock step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text.empty() ? "none" : text;
}

Result<WantedVersion> ParseWantedVersion(const std::string& text) {
  if (text == "newest") return WantedVersion{};
  if (text == "best") return WantedVersion{WhichCheckpoint::kBest, kNoClock};
  WantedVersion wanted;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted.step);
  if (error == std::errc() && end == text.data() + text.size() && wanted.step >= 0) return wanted;
  return Status(Code::kInvalidArgument,
                "--which=" + text + ": expected newest, best or the step of a checkpoint");
}

VersionSource::VersionSource(FileSystem& files, const std::string& path)
    : files_(files),
      alone_(files.Exists(ManifestIn(path))),
      root_(alone_ ? path : CheckpointRoot(files, path)) {}

std::string VersionSource::FolderOf(Clock clock) const {
  return alone_ ? root_ : JoinPath(root_, CheckpointName(clock));
}

bool VersionSource::Has(Clock clock) const {
  return alone_ ? MarkOf(clock).ok() : files_.Exists(ManifestIn(FolderOf(clock)));
}

bool VersionSource::Look() {
  std::vector<Clock> clocks;
  if (!alone_) {
    clocks = ClocksUnder(files_, root_);
  } else if (const Result<Manifest> own = ReadManifest(files_, root_); own.ok()) {
    clocks = {own->clock};
  }
  std::vector<std::pair<Clock, FileStamp>> seen;
  clocks_.clear();
  for (const Clock clock : clocks) {
    const Result<FileStamp> stamp = files_.StampOf(ManifestIn(FolderOf(clock)));
    if (!stamp.ok()) continue;
    seen.emplace_back(clock, *stamp);
    clocks_.push_back(clock);
  }
  std::swap(seen, seen_);
  return seen != seen_;
}

std::vector<Clock> VersionSource::Candidates(const WantedVersion& wanted, Clock at_hand) const {
  if (wanted.step != kNoClock) return {wanted.step};
  if (wanted.which == WhichCheckpoint::kNewest) return clocks_;
  for (const Clock clock : clocks_) {
    const Result<Manifest> manifest = ReadManifest(files_, FolderOf(clock));
    if (!manifest.ok()) continue;
    const Clock best = manifest->watched.best.best_clock;
    if (std::ranges::find(clocks_, best) == clocks_.end()) break;
    std::vector<Clock> candidates = {best};
    if (at_hand == kNoClock) candidates.insert(candidates.end(), clocks_.begin(), clocks_.end());
    return candidates;
  }
  return clocks_;
}

Result<VersionMark> VersionSource::MarkOf(Clock clock) const {
  HDPS_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(files_, FolderOf(clock)));
  if (manifest.clock != clock) {
    return Status(Code::kCorruption, ManifestIn(FolderOf(clock)) + ": it is that of clock " +
                                         std::to_string(manifest.clock));
  }
  return VersionMark{clock, ManifestChecksum(manifest)};
}

std::vector<CheckpointPart> VersionSource::DeltasFrom(const VersionMark& from, Clock clock) const {
  std::vector<CheckpointPart> parts;
  for (VersionMark at{clock, 0}; at != from;) {
    Result<Manifest> manifest = ReadManifest(files_, FolderOf(at.clock));
    if (!manifest.ok() || !manifest->is_delta() || manifest->clock != at.clock) return {};
    if (!parts.empty() && ManifestChecksum(*manifest) != at.checksum) return {};
    at = {manifest->base_clock, manifest->base_checksum};
    parts.push_back({FolderOf(manifest->clock), *std::move(manifest)});
    if (at.clock < from.clock) return {};
  }
  std::ranges::reverse(parts);
  return parts;
}

}  // namespace hdps
