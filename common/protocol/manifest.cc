// Manifests as JSON with a checksum of their own.

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "common/base/hash.h"
#include "common/base/hex_digits.h"
#include "common/platform/failpoint.h"
#include "common/platform/file_system.h"
#include "common/protocol/checkpoints/json_numbers.h"
#include "common/protocol/manifest.h"
#include "common/protocol/partition_offsets.h"
#include "common/protocol/watch_state.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "hdps checkpoint";
constexpr int kFormatVersion = 1;  // Version of a full checkpoint.
constexpr int kDeltaVersion = 2;   // Version of a delta checkpoint.
constexpr uint64_t kManifestBytesMax = 64u << 20;

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

Json SumsJson(const TrainedSums& sums) {
  return {{"examples", sums.examples}, {"loss_sum", sums.loss_sum}};
}

Json ToJson(const Manifest& manifest) {
  Json files = Json::array();
  for (const SavedFile& file : manifest.files) {
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"checksum", HexDigits(file.checksum)},
                     {"rows", file.rows}});
    if (file.pack.empty()) continue;
    files.back()["pack"] = file.pack;
    files.back()["offset"] = file.offset;
  }
  Json json = {{"format", kFormat},
               {"version", manifest.is_delta() ? kDeltaVersion : kFormatVersion},
               {"job_name", manifest.job_name},
               {"job_digest", HexDigits(manifest.job_digest)},
               {"tables_digest", HexDigits(manifest.tables_digest)},
               {"num_shards", manifest.num_shards},
               {"clock", manifest.clock},
               {"epoch", manifest.epoch},
               {"epoch_start", manifest.epoch_start},
               {"examples", manifest.examples},
               {"epoch_sums", SumsJson(manifest.epoch_sums)},
               {"last_epoch_sums", SumsJson(manifest.last_epoch_sums)},
               {"bad_rows", manifest.bad_rows},
               {"arithmetic", manifest.arithmetic},
               {"job", manifest.job_json},
               {"files", std::move(files)}};
  if (manifest.unknown_ids > 0) json["unknown_ids"] = manifest.unknown_ids;
  if (const RowCounts& counts = manifest.row_counts; counts != RowCounts()) {
    json["row_counts"] = {
        {"admitted", counts.admitted}, {"refused", counts.refused}, {"evicted", counts.evicted}};
  }
  for (const SettingChange& change : manifest.changes) {
    json["changes"].push_back({{"clock", change.clock},
                               {"setting", change.setting},
                               {"from", change.from},
                               {"to", change.to}});
  }
  for (const FilePrint& file : manifest.data_files) {
    json["data_files"].push_back({{"bytes", file.bytes}, {"hash", HexDigits(file.hash)}});
  }
  AddOffsets(manifest.offsets, &json);
  for (const StepTime& time : manifest.step_times) {
    json["step_times"].push_back({time.clock, time.trained_ms});
  }
  if (manifest.trained_ms > 0) json["trained_ms"] = manifest.trained_ms;
  if (manifest.steps_before > 0) json["steps_before"] = manifest.steps_before;
  if (manifest.watched != Watched()) json["watched"] = Json::parse(PrintWatched(manifest.watched));
  if (manifest.is_delta()) {
    json["base"] = {{"clock", manifest.base_clock},
                    {"checksum", HexDigits(manifest.base_checksum)}};
  }
  return json;
}

TrainedSums SumsOf(const Json& json) {
  return {WholeOr<uint64_t>(json, "examples", 0), json.value("loss_sum", 0.0)};
}

// Throws nlohmann's exceptions or std::invalid_argument if `json` is not a manifest.
Manifest FromJson(const Json& json) {
  if (json.at("format").get<std::string>() != kFormat) {
    throw std::invalid_argument("the format is not '" + std::string(kFormat) + "'");
  }
  const int version = WholeOf<int>(json.at("version"));
  if (version != kFormatVersion && version != kDeltaVersion) {
    throw std::invalid_argument("version " + std::to_string(version) + ", this program reads " +
                                std::to_string(kFormatVersion) + " and " +
                                std::to_string(kDeltaVersion));
  }
  Manifest manifest;
  manifest.job_name = json.at("job_name").get<std::string>();
  manifest.job_digest = FromHex(json.at("job_digest").get<std::string>());
  manifest.tables_digest = FromHex(json.at("tables_digest").get<std::string>());
  manifest.num_shards = WholeOf<uint32_t>(json.at("num_shards"));
  manifest.clock = WholeOf<Clock>(json.at("clock"));
  manifest.epoch = WholeOf<uint32_t>(json.at("epoch"));
  manifest.epoch_start = WholeOf<Clock>(json.at("epoch_start"));
  manifest.examples = WholeOf<uint64_t>(json.at("examples"));
  manifest.epoch_sums = SumsOf(json.value("epoch_sums", Json::object()));
  manifest.last_epoch_sums = SumsOf(json.value("last_epoch_sums", Json::object()));
  manifest.bad_rows = WholeOr<uint64_t>(json, "bad_rows", 0);
  manifest.unknown_ids = WholeOr<uint64_t>(json, "unknown_ids", 0);
  if (json.contains("row_counts")) {
    const Json& counts = json.at("row_counts");
    manifest.row_counts.admitted = WholeOf<uint64_t>(counts.at("admitted"));
    manifest.row_counts.refused = WholeOf<uint64_t>(counts.at("refused"));
    manifest.row_counts.evicted = WholeOf<uint64_t>(counts.at("evicted"));
  }
  for (const Json& change : json.value("changes", Json::array())) {
    manifest.changes.push_back({.clock = WholeOf<Clock>(change.at("clock")),
                                .setting = change.at("setting").get<std::string>(),
                                .from = change.at("from").get<std::string>(),
                                .to = change.at("to").get<std::string>()});
  }
  if (json.contains("watched")) {
    Result<Watched> watched = ParseWatched(Dump(json.at("watched")));
    if (!watched.ok()) throw std::invalid_argument(watched.status().message());
    manifest.watched = *std::move(watched);
  }
  manifest.trained_ms = WholeOr<int64_t>(json, "trained_ms", 0);
  manifest.steps_before = WholeOr<int64_t>(json, "steps_before", 0);
  for (const Json& time : json.value("step_times", Json::array())) {
    manifest.step_times.push_back({WholeOf<Clock>(time.at(0)), WholeOf<int64_t>(time.at(1))});
  }
  manifest.offsets = OffsetsIn(json);
  manifest.arithmetic = json.value("arithmetic", std::vector<std::string>());
  for (const Json& file : json.value("data_files", Json::array())) {
    manifest.data_files.push_back(
        {WholeOf<uint64_t>(file.at("bytes")), FromHex(file.at("hash").get<std::string>())});
  }
  manifest.job_json = json.at("job").get<std::string>();
  for (const Json& file : json.at("files")) {
    manifest.files.push_back({.name = file.at("name").get<std::string>(),
                              .bytes = WholeOf<uint64_t>(file.at("bytes")),
                              .checksum = FromHex(file.at("checksum").get<std::string>()),
                              .rows = WholeOf<uint64_t>(file.at("rows")),
                              .pack = file.value("pack", std::string()),
                              .offset = WholeOr<uint64_t>(file, "offset", 0)});
  }
  if (version == kDeltaVersion) {
    manifest.base_clock = WholeOf<Clock>(json.at("base").at("clock"));
    manifest.base_checksum = FromHex(json.at("base").at("checksum").get<std::string>());
    if (!manifest.is_delta()) throw std::invalid_argument("a delta that builds on nothing");
  }
  return manifest;
}

// Returns what is wrong with times of steps; empty if nothing.
std::string FaultOf(const std::vector<StepTime>& times) {
  const auto falls = [](const StepTime& a, const StepTime& b) {
    return a.clock >= b.clock || a.trained_ms > b.trained_ms;
  };
  const bool begins = times.empty() || (times[0].clock >= 0 && times[0].trained_ms >= 0);
  const bool grow = std::ranges::adjacent_find(times, falls) == times.end();
  return begins && grow && times.size() <= kStepTimesMax ? "" : "times of steps that do not grow";
}

// Returns what is wrong with the manifest; empty if nothing.
std::string FindFault(const Manifest& manifest) {
  if (manifest.clock < 0 || manifest.epoch_start < 0 || manifest.epoch_start > manifest.clock) {
    return "clock " + std::to_string(manifest.clock) + " with an epoch that began at " +
           std::to_string(manifest.epoch_start);
  }
  if (manifest.trained_ms < 0) return "a time of training below 0";
  if (manifest.steps_before < 0) return "steps of jobs before below 0";
  if (const std::string fault = FaultOf(manifest.step_times); !fault.empty()) return fault;
  if (manifest.files.size() != manifest.num_shards) {
    return std::to_string(manifest.files.size()) + " files for " +
           std::to_string(manifest.num_shards) + " shards";
  }
  if (manifest.is_delta() && (manifest.base_clock < 0 || manifest.base_clock >= manifest.clock)) {
    return "clock " + std::to_string(manifest.clock) + " builds on clock " +
           std::to_string(manifest.base_clock);
  }
  std::set<std::string> names;
  for (const SavedFile& file : manifest.files) {
    for (const std::string& name : {file.name, file.pack.empty() ? file.name : file.pack}) {
      if (!name.empty() && name.find('/') == std::string::npos && name[0] != '.') continue;
      return "'" + name + "' is not the name of a file inside the checkpoint";
    }
    if (file.pack.empty() ? file.offset != 0 : file.offset + file.bytes < file.bytes) {
      return "the file " + file.name + " begins at byte " + std::to_string(file.offset);
    }
    if (!names.insert(file.name).second) return "the file " + file.name + " is named twice";
    if (HoldsChanges(file) && !manifest.is_delta()) {
      return "the file " + file.name + " holds changes, but the checkpoint builds on no other";
    }
  }
  return "";
}

}  // namespace

std::string CheckpointName(Clock clock) {
  char text[32];
  std::snprintf(text, sizeof text, "step_%010" PRId64, clock);
  return text;
}

uint64_t ManifestChecksum(const Manifest& manifest) { return HashString(Dump(ToJson(manifest))); }

Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest) {
  // A manifest that the reader would refuse is never written.
  if (const std::string fault = FindFault(manifest); !fault.empty()) {
    return {Code::kInvalidArgument, "the manifest for " + folder + " makes no sense: " + fault};
  }
  const Json body = ToJson(manifest);
  const Json whole = {{"checksum", HexDigits(HashString(Dump(body)))}, {"checkpoint", body}};
  return WriteFileAtomically(files, JoinPath(folder, kManifestName), Dump(whole) + "\n",
                             manifest.is_delta() ? Survives::kProcess : Survives::kMachine);
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
    if (const std::string found = HexDigits(HashString(Dump(body))); found != expected) {
      return Status(Code::kCorruption,
                    path + ": its contents have the checksum " + found + ", not " + expected);
    }
    Manifest manifest = FromJson(body);
    if (const std::string fault = FindFault(manifest); !fault.empty()) {
      return Status(Code::kCorruption, path + ": " + fault);
    }
    return manifest;
  } catch (const std::bad_alloc&) {
    throw;  // Not caused by the text.
  } catch (const std::exception& error) {
    return Status(Code::kCorruption, path + ": " + error.what());
  }
}

}  // namespace hdps
