// Fuzzes manifests of checkpoints: writing and reading again gives the same.

#include <glog/logging.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/hash.h"
#include "common/protocol/manifest.h"
#include "common/protocol/manifest_parts.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

using Json = nlohmann::json;
constexpr const char* kFolder = "out/step_0000000120";

// Returns the file with `checkpoint` and a valid checksum.
std::string Sealed(std::string_view checkpoint) {
  const Json inner = Json::parse(checkpoint, nullptr, false);
  if (inner.is_discarded()) return std::string(checkpoint);
  const std::string text = inner.dump(1, ' ', false, Json::error_handler_t::replace);
  char checksum[17];
  std::snprintf(checksum, sizeof checksum, "%016" PRIx64, HashString(text));
  return Json({{"checkpoint", inner}, {"checksum", checksum}})
      .dump(1, ' ', false, Json::error_handler_t::replace);
}

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  const bool repaired = TakeChecksumRepair(input);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::string_view text = input.TakeRest();
  PutFile(*files, JoinPath(kFolder, kManifestName), repaired ? Sealed(text) : std::string(text));
  const Result<Manifest> read = ReadManifest(*files, kFolder);
  const Result<FoundCheckpoint> found = OpenCheckpoint(*files, "out", WhichCheckpoint::kBest);
  if (!read.ok()) {
    CHECK(!found.ok());
    return Refused(read.status(), Code::kCorruption);
  }
  CHECK(files->MakeDirectories("again").ok());
  const Status written = WriteManifest(*files, "again", *read);
  CHECK(written.ok()) << written.message();
  const Result<Manifest> again = ReadManifest(*files, "again");
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(ManifestChecksum(*again), ManifestChecksum(*read));
  for (const SavedFile& saved : read->files) {  // No name may lead out of the folder.
    CHECK(PlaceOf(kFolder, saved).starts_with(kFolder));
    CHECK(saved.name.find('/') == std::string::npos && saved.pack.find('/') == std::string::npos);
  }
  PruneCheckpoints(*files, "out", 1).ok();
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  Manifest manifest;
  manifest.job_name = "census";
  manifest.job_digest = 0xfedcba9876543210u;
  manifest.num_shards = 2;
  manifest.clock = 120;
  manifest.epoch = 3;
  manifest.epoch_start = 60;
  manifest.watched.best = {"auc", 100, 0.75, 1, 110};
  manifest.arithmetic = {"avx2 vectors", "avx512 vectors"};
  manifest.job_json = "{}\n";
  manifest.files = {{"shard_000.snapshot", 100, 1, 7}, {"shard_001.snapshot", 0, 2, 0}};
  const auto add = [&] {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    CHECK(files->MakeDirectories("a").ok());
    CHECK(WriteManifest(*files, "a", manifest).ok());
    const std::string text = *ReadWholeFile(*files, "a/manifest.json", 1 << 20);
    seeds.push_back('\0' + text);
    seeds.push_back('\1' + Json::parse(text)["checkpoint"].dump(1));
  };
  add();
  manifest.base_clock = 100;
  manifest.base_checksum = 5;
  manifest.files[0].name = "shard_000.delta";
  manifest.files[1] = {"shard_001.delta", 10, 2, 0, "shards_000.pack", 90};
  add();
  return seeds;
}

const AddTarget added({"manifest", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
