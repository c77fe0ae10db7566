// Manifests as JSON with a checksum of their own, and the search for the newest whole checkpoint.
#include "common/protocol/manifest.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common/base/hash.h"
#include "common/platform/failpoint.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "hdps checkpoint";
constexpr int kFormatVersion = 1;
constexpr uint64_t kManifestBytesMax = 64u << 20;
constexpr std::string_view kNamePrefix = "step_";

// Numbers of 64 bits are written as hexadecimal text, since many readers of JSON keep only 53 bits.
std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

uint64_t FromHex(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16) {
    throw std::invalid_argument("'" + text + "' is not 16 hexadecimal digits");
  }
  return value;
}

std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

Json ToJson(const Manifest& manifest) {
  Json files = Json::array();
  for (const SavedFile& file : manifest.files) {
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"checksum", Hex(file.checksum)},
                     {"rows", file.rows}});
  }
  return {{"format", kFormat},
          {"version", kFormatVersion},
          {"job_name", manifest.job_name},
          {"job_digest", Hex(manifest.job_digest)},
          {"tables_digest", Hex(manifest.tables_digest)},
          {"num_shards", manifest.num_shards},
          {"clock", manifest.clock},
          {"epoch", manifest.epoch},
          {"epoch_start", manifest.epoch_start},
          {"examples", manifest.examples},
          {"arithmetic", manifest.arithmetic},
          {"job", manifest.job_json},
          {"files", std::move(files)}};
}

// Throws what nlohmann throws, or std::invalid_argument, when `json` is not a manifest.
Manifest FromJson(const Json& json) {
  if (json.at("format").get<std::string>() != kFormat) {
    throw std::invalid_argument("the format is not '" + std::string(kFormat) + "'");
  }
  if (const int version = json.at("version").get<int>(); version != kFormatVersion) {
    throw std::invalid_argument("version " + std::to_string(version) + ", this program reads " +
                                std::to_string(kFormatVersion));
  }
  Manifest manifest;
  manifest.job_name = json.at("job_name").get<std::string>();
  manifest.job_digest = FromHex(json.at("job_digest").get<std::string>());
  manifest.tables_digest = FromHex(json.at("tables_digest").get<std::string>());
  manifest.num_shards = json.at("num_shards").get<uint32_t>();
  manifest.clock = json.at("clock").get<Clock>();
  manifest.epoch = json.at("epoch").get<uint32_t>();
  manifest.epoch_start = json.at("epoch_start").get<Clock>();
  manifest.examples = json.at("examples").get<uint64_t>();
  manifest.arithmetic = json.value("arithmetic", std::vector<std::string>());
  manifest.job_json = json.at("job").get<std::string>();
  for (const Json& file : json.at("files")) {
    manifest.files.push_back({.name = file.at("name").get<std::string>(),
                              .bytes = file.at("bytes").get<uint64_t>(),
                              .checksum = FromHex(file.at("checksum").get<std::string>()),
                              .rows = file.at("rows").get<uint64_t>()});
  }
  return manifest;
}

// Empty when the manifest makes sense.
std::string FindFault(const Manifest& manifest) {
  if (manifest.clock < 0 || manifest.epoch_start < 0 || manifest.epoch_start > manifest.clock) {
    return "clock " + std::to_string(manifest.clock) + " with an epoch that began at " +
           std::to_string(manifest.epoch_start);
  }
  if (manifest.files.size() != manifest.num_shards) {
    return std::to_string(manifest.files.size()) + " files for " +
           std::to_string(manifest.num_shards) + " shards";
  }
  std::set<std::string> names;
  for (const SavedFile& file : manifest.files) {
    if (file.name.empty() || file.name.find('/') != std::string::npos || file.name[0] == '.') {
      return "'" + file.name + "' is not the name of a file inside the checkpoint";
    }
    if (!names.insert(file.name).second) return "the file " + file.name + " is named twice";
  }
  return "";
}

// The clock of a checkpoint's folder by its name; none for a folder that is something else.
std::optional<Clock> ClockOfName(const std::string& name) {
  if (!name.starts_with(kNamePrefix)) return std::nullopt;
  const char* begin = name.data() + kNamePrefix.size();
  const char* end = name.data() + name.size();
  Clock clock = 0;
  const auto [stop, error] = std::from_chars(begin, end, clock);
  if (error != std::errc() || stop != end || CheckpointName(clock) != name) return std::nullopt;
  return clock;
}

// Newest first; empty when there is no such folder.
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

// The manifest of a checkpoint that verifies.
Result<Manifest> ReadVerified(FileSystem& files, const std::string& folder) {
  HDPS_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(files, folder));
  HDPS_RETURN_IF_ERROR(VerifyCheckpoint(files, folder, manifest));
  return manifest;
}

}  // namespace

std::string CheckpointName(Clock clock) {
  char text[32];
  std::snprintf(text, sizeof text, "step_%010" PRId64, clock);
  return text;
}

Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  // What would be refused by the reader is never written.
  if (const std::string fault = FindFault(manifest); !fault.empty()) {
    return {Code::kInvalidArgument, "the manifest for " + folder + " makes no sense: " + fault};
  }
  const Json body = ToJson(manifest);
  const Json whole = {{"checksum", Hex(HashString(Dump(body)))}, {"checkpoint", body}};
  return WriteFileAtomically(files, JoinPath(folder, kManifestName), Dump(whole) + "\n");
}

Result<Manifest> ReadManifest(FileSystem& files, const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestName);
  if (!files.Exists(path)) {
    return Status(Code::kNotFound, path + ": there is no manifest, so the save was not finished");
  }
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kManifestBytesMax));
  try {
    const Json whole = Json::parse(text);
    const Json& body = whole.at("checkpoint");
    const std::string expected = whole.at("checksum").get<std::string>();
    if (const std::string found = Hex(HashString(Dump(body))); found != expected) {
      return Status(Code::kCorruption,
                    path + ": its contents have the checksum " + found + ", not " + expected);
    }
    Manifest manifest = FromJson(body);
    if (const std::string fault = FindFault(manifest); !fault.empty()) {
      return Status(Code::kCorruption, path + ": " + fault);
    }
    return manifest;
  } catch (const std::exception& error) {
    return Status(Code::kCorruption, path + ": " + error.what());
  }
}

Result<SavedFile> ChecksumFile(FileSystem& files, const std::string& folder,
                               const std::string& name) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file,
                        files.OpenSequential(JoinPath(folder, name)));
  SavedFile found{.name = name};
  HashStream hash;
  std::vector<std::byte> buffer(1u << 20);
  for (;;) {
    HDPS_ASSIGN_OR_RETURN(const size_t size, file->Read(buffer));
    if (size == 0) break;
    hash.Append({buffer.data(), size});
    found.bytes += size;
  }
  found.checksum = hash.Value();
  return found;
}

Status VerifyCheckpoint(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  for (const SavedFile& expected : manifest.files) {
    const std::string path = JoinPath(folder, expected.name);
    if (!files.Exists(path)) return {Code::kCorruption, path + ": the file is missing"};
    HDPS_ASSIGN_OR_RETURN(const SavedFile found, ChecksumFile(files, folder, expected.name));
    if (found.bytes != expected.bytes) {
      return {Code::kCorruption, path + ": " + std::to_string(found.bytes) +
                                     " bytes, the manifest says " + std::to_string(expected.bytes)};
    }
    if (found.checksum != expected.checksum) {
      return {Code::kCorruption, path + ": checksum " + Hex(found.checksum) +
                                     ", the manifest says " + Hex(expected.checksum)};
    }
  }
  return {};
}

Result<FoundCheckpoint> FindCheckpoint(FileSystem& files, const std::string& root, Clock before) {
  FoundCheckpoint found;
  for (const Clock clock : ClocksUnder(files, root)) {
    if (clock >= before) continue;
    found.folder = JoinPath(root, CheckpointName(clock));
    Result<Manifest> manifest = ReadVerified(files, found.folder);
    if (manifest.ok() && manifest->clock != clock) {
      manifest = Status(Code::kCorruption,
                        "its manifest is that of clock " + std::to_string(manifest->clock));
    }
    if (manifest.ok()) {
      found.manifest = *std::move(manifest);
      return found;
    }
    found.refused.push_back(found.folder + ": " + manifest.status().message());
  }
  std::string message = root + ": there is no whole checkpoint";
  for (const std::string& refused : found.refused) message += "; refused " + refused;
  return Status(Code::kNotFound, message);
}

Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path) {
  if (!files.Exists(path)) return Status(Code::kNotFound, path + ": no such folder");
  if (files.Exists(JoinPath(path, kManifestName))) {
    FoundCheckpoint found{.folder = path, .manifest = {}, .refused = {}};
    HDPS_ASSIGN_OR_RETURN(found.manifest, ReadVerified(files, path));
    return found;
  }
  const std::string inner = JoinPath(path, "checkpoint");
  if (files.Exists(inner)) return FindCheckpoint(files, inner);
  return FindCheckpoint(files, path);
}

Status PruneCheckpoints(FileSystem& files, const std::string& root, uint32_t keep) {
  uint32_t kept = 0;
  for (const Clock clock : ClocksUnder(files, root)) {
    const std::string folder = JoinPath(root, CheckpointName(clock));
    const bool complete = ReadManifest(files, folder).ok();
    if (complete && kept < std::max(keep, 1u)) {
      ++kept;
      continue;
    }
    // An incomplete one newer than all complete ones may be the one that is being written.
    if (!complete && kept == 0) continue;
    // The manifest goes first, so that a removal that is cut short leaves no checkpoint behind.
    HDPS_RETURN_IF_ERROR(files.RemoveAll(JoinPath(folder, kManifestName)));
    HDPS_FAILPOINT_OR_RETURN("checkpoint.half_removed");
    HDPS_RETURN_IF_ERROR(files.RemoveAll(folder));
  }
  return {};
}

}  // namespace hdps
