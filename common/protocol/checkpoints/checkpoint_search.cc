// Finds checkpoints among folders: the parts of one, the newest that verifies, and those to remove.
#include "common/protocol/checkpoints/checkpoint_search.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/ids.h"
#include "common/platform/failpoint.h"
#include "common/platform/file_identity.h"
#include "common/protocol/manifest.h"

namespace hdps {
namespace {

constexpr std::string_view kNamePrefix = "step_";

// Returns the folder that contains `folder`.
std::string FolderAround(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const size_t slash = folder.rfind('/');
  const std::string name = slash == std::string::npos ? folder : folder.substr(slash + 1);
  if (!ClockOfName(name)) return JoinPath(folder, "..");
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

// Reads the parts of checkpoints, each once however many build on it. With `verify`, it also reads
// their other files.
class PartReader {
 public:
  PartReader(FileSystem& files, bool verify) : files_(files), verify_(verify) {}

  Result<std::vector<CheckpointPart>> Read(const std::string& folder) {
    std::vector<CheckpointPart> parts;
    HDPS_ASSIGN_OR_RETURN(Manifest newest, ReadPart(folder));
    parts.push_back({folder, std::move(newest)});
    std::string around;
    while (parts.back().manifest.is_delta()) {
      const CheckpointPart& upper = parts.back();
      if (around.empty()) around = FolderAround(folder);
      std::string base = JoinPath(around, CheckpointName(upper.manifest.base_clock));
      Result<Manifest> manifest = ReadPart(base);
      if (!manifest.ok()) return BuildsOn(upper, manifest.status().message());
      if (const std::string fault = FindFault(upper.manifest, *manifest); !fault.empty()) {
        return BuildsOn(upper, JoinPath(base, kManifestName) + ": " + fault);
      }
      parts.push_back({std::move(base), *std::move(manifest)});
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

 private:
  Result<Manifest> ReadPart(const std::string& folder) {
    const auto known = read_.find(folder);
    if (known != read_.end()) return known->second;
    Result<Manifest> manifest = ReadManifest(files_, folder);
    if (manifest.ok() && verify_) {
      const Status status = VerifyCheckpoint(files_, folder, *manifest);
      if (!status.ok()) manifest = status;
    }
    return read_.emplace(folder, std::move(manifest)).first->second;
  }

  static Status BuildsOn(const CheckpointPart& upper, const std::string& fault) {
    return {Code::kCorruption, "builds on clock " + std::to_string(upper.manifest.base_clock) +
                                   ", which is not whole: " + fault};
  }

  // Returns why `upper` does not build on `base`; empty if it does.
  static std::string FindFault(const Manifest& upper, const Manifest& base) {
    if (base.clock != upper.base_clock) {
      return "it is that of clock " + std::to_string(base.clock);
    }
    if (ManifestChecksum(base) != upper.base_checksum) {
      return "it is not the one that clock " + std::to_string(upper.clock) + " was built on";
    }
    return "";
  }

  FileSystem& files_;
  const bool verify_;
  std::map<std::string, Result<Manifest>> read_;
};

FoundCheckpoint Found(std::vector<CheckpointPart> chain) {
  FoundCheckpoint found{.folder = chain.back().folder,
                        .manifest = chain.back().manifest,
                        .refused = {},
                        .chain = {},
                        .newest = kNoClock};
  found.chain = std::move(chain);
  return found;
}

}  // namespace

std::optional<Clock> ClockOfName(const std::string& name) {
  if (!name.starts_with(kNamePrefix)) return std::nullopt;
  const char* begin = name.data() + kNamePrefix.size();
  const char* end = name.data() + name.size();
  Clock clock = 0;
  const auto [stop, error] = std::from_chars(begin, end, clock);
  if (error != std::errc() || stop != end || CheckpointName(clock) != name) return std::nullopt;
  return clock;
}

std::string CheckpointRoot(FileSystem& files, const std::string& path) {
  std::string inner = JoinPath(path, "checkpoint");
  return files.Exists(inner) ? inner : path;
}

std::vector<Clock> ClocksUnder(FileSystem& files, const std::string& root) {
  std::vector<Clock> clocks;
  Result<std::vector<std::string>> names = files.List(root);
  if (!names.ok()) return clocks;
  for (const std::string& name : *names) {
    if (const std::optional<Clock> clock = ClockOfName(name)) clocks.push_back(*clock);
  }
  std::sort(clocks.begin(), clocks.end(), std::greater<>());
  return clocks;
}

Result<std::vector<CheckpointPart>> ReadChain(FileSystem& files, const std::string& folder) {
  return PartReader(files, /*verify=*/false).Read(folder);
}

Result<FoundCheckpoint> FindCheckpoint(FileSystem& files, const std::string& root, Clock before) {
  std::vector<std::string> refused;
  PartReader reader(files, /*verify=*/true);
  for (const Clock clock : ClocksUnder(files, root)) {
    if (clock >= before) continue;
    const std::string folder = JoinPath(root, CheckpointName(clock));
    Result<std::vector<CheckpointPart>> chain = reader.Read(folder);
    if (chain.ok() && chain->back().manifest.clock != clock) {
      chain = Status(Code::kCorruption, "its manifest is that of clock " +
                                            std::to_string(chain->back().manifest.clock));
    }
    if (chain.ok()) {
      FoundCheckpoint found = Found(*std::move(chain));
      found.refused = std::move(refused);
      return found;
    }
    refused.push_back(folder + ": " + chain.status().message());
  }
  std::string message = root + ": there is no whole checkpoint";
  for (const std::string& one : refused) message += "; refused " + one;
  return Status(Code::kNotFound, message);
}

Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path) {
  if (!files.Exists(path)) return Status(Code::kNotFound, path + ": no such folder");
  if (files.Exists(JoinPath(path, kManifestName))) {
    PartReader reader(files, /*verify=*/true);
    HDPS_ASSIGN_OR_RETURN(std::vector<CheckpointPart> chain, reader.Read(path));
    return Found(std::move(chain));
  }
  return FindCheckpoint(files, CheckpointRoot(files, path));
}

Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which) {
  HDPS_ASSIGN_OR_RETURN(FoundCheckpoint newest, OpenCheckpoint(files, path));
  const Clock best = newest.manifest.watched.best.best_clock;
  const bool named = files.Exists(JoinPath(path, kManifestName));
  if (named || which == WhichCheckpoint::kNewest || best < 0 || best == newest.manifest.clock) {
    return newest;
  }
  const std::string folder = JoinPath(FolderAround(newest.folder), CheckpointName(best));
  if (!files.Exists(JoinPath(folder, kManifestName))) return newest;
  Result<FoundCheckpoint> found = OpenCheckpoint(files, folder);
  if (!found.ok()) {
    newest.refused.push_back(folder + ": " + found.status().message());
    return newest;
  }
  found->newest = newest.manifest.clock;
  found->refused = std::move(newest.refused);
  return found;
}

Status PruneCheckpoints(FileSystem& files, const std::string& root, uint32_t keep, Clock best,
                        const std::set<Clock>& held) {
  const std::vector<Clock> clocks = ClocksUnder(files, root);
  std::set<Clock> kept;
  uint32_t full = 0;
  for (const Clock clock : clocks) {
    const Result<Manifest> manifest = ReadManifest(files, JoinPath(root, CheckpointName(clock)));
    if (!manifest.ok()) continue;
    if (clock == best || held.count(clock) > 0) kept.insert(clock);
    if (full < std::max(keep, 1u)) {
      kept.insert(clock);
      if (!manifest->is_delta()) ++full;
    }
    // Clocks are visited from the newest, so every delta on this checkpoint was seen before it.
    if (kept.count(clock) > 0 && manifest->is_delta()) kept.insert(manifest->base_clock);
  }
  for (const Clock clock : clocks) {
    // An incomplete checkpoint newer than all complete ones may be a save in progress.
    if (kept.count(clock) > 0 || kept.empty() || clock > *kept.rbegin()) continue;
    const std::string folder = JoinPath(root, CheckpointName(clock));
    // The manifest is removed first, so that an interrupted removal leaves no checkpoint behind. If
    // the folder is a link, only the link is removed.
    if (!IsLink(files, folder)) {
      HDPS_RETURN_IF_ERROR(files.RemoveAll(JoinPath(folder, kManifestName)));
    }
    HDPS_FAILPOINT_OR_RETURN("checkpoint.half_removed");
    HDPS_RETURN_IF_ERROR(files.RemoveAll(folder));
  }
  return {};
}

Result<size_t> RemoveUnfinished(FileSystem& files, const std::string& root) {
  size_t removed = 0;
  for (const Clock clock : ClocksUnder(files, root)) {
    const std::string folder = JoinPath(root, CheckpointName(clock));
    if (files.Exists(JoinPath(folder, kManifestName))) continue;
    HDPS_RETURN_IF_ERROR(files.RemoveAll(folder));
    ++removed;
  }
  return removed;
}

}  // namespace hdps
