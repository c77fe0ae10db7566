// Lists the folder, and walks from a delta down to the version at hand.
#include "tools/serve/versions/version_source.h"

#include <algorithm>
#include <charconv>
#include <utility>

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
  bool repaired = false;
  for (auto& [clock, stamps] : refused_) {
    auto now = FilesIn(stamps.folders);
    repaired = repaired || now != stamps.files;
    stamps.files = std::move(now);
  }
  return repaired || seen != seen_;
}

std::vector<std::pair<std::string, FileStamp>> VersionSource::FilesIn(
    const std::vector<std::string>& folders) const {
  std::vector<std::pair<std::string, FileStamp>> found;
  for (const std::string& folder : folders) {
    const Result<std::vector<std::string>> names = files_.List(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      std::string path = JoinPath(folder, name);
      const Result<FileStamp> stamp = files_.StampOf(path);
      if (stamp.ok()) found.emplace_back(std::move(path), *stamp);
    }
  }
  return found;
}

VersionSource::ChainStamps VersionSource::StampsOf(Clock clock) const {
  ChainStamps stamps;
  while (true) {
    stamps.folders.push_back(FolderOf(clock));
    const Result<Manifest> manifest = ReadManifest(files_, stamps.folders.back());
    if (!manifest.ok() || !manifest->is_delta() || manifest->base_clock >= clock) break;
    clock = manifest->base_clock;
  }
  stamps.files = FilesIn(stamps.folders);
  return stamps;
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
