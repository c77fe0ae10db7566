// Tests manifests: written and read back, refused if damaged; the newest intact checkpoint is
// found.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/platform/file_system.h"
#include "common/platform/random.h"
#include "common/protocol/manifest.h"
#include "common/protocol/manifest_parts.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ManifestTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::unique_ptr<WritableFile> file = *files_->Create(path);
    ASSERT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE(file->Close().ok());
  }
  std::string Read(const std::string& path) { return *ReadWholeFile(*files_, path, 1u << 20); }

  Manifest Make(Clock clock) {
    Manifest manifest;
    manifest.job_name = "census";
    manifest.job_digest = 0xfedcba9876543210u;  // More than the 53 bits of a JSON number.
    manifest.tables_digest = 2;
    manifest.num_shards = 2;
    manifest.clock = clock;
    manifest.epoch = 3;
    manifest.epoch_start = clock / 2;
    manifest.examples = uint64_t{1} << 60;
    manifest.arithmetic = {"avx2 vectors", "avx512 vectors"};
    manifest.unknown_ids = 11;
    manifest.row_counts = {.admitted = uint64_t{1} << 60, .refused = 5, .evicted = 7};
    manifest.trained_ms = 9000;
    manifest.step_times = {{40, 2000}, {90, 6000}};
    manifest.offsets = {{0, int64_t{1} << 40}, {5, 0}};
    manifest.changes = {{2, "train.batch_size", "32", "64"}, {3, "train.mode", "sync", "async"}};
    manifest.job_json = "{\"name\": \"census\"}\n";
    return manifest;
  }
  // Saves a checkpoint with two files.
  std::string Save(Clock clock) {
    const std::string folder = JoinPath("out", CheckpointName(clock));
    EXPECT_TRUE(files_->MakeDirectories(folder).ok());
    Manifest manifest = Make(clock);
    for (const char* name : {"shard_000.snapshot", "shard_001.snapshot"}) {
      Write(JoinPath(folder, name), std::string(100, 'x') + name + std::to_string(clock));
      Result<SavedFile> saved = ChecksumFile(*files_, folder, name);
      EXPECT_TRUE(saved.ok());
      saved->rows = 7;
      manifest.files.push_back(*saved);
    }
    EXPECT_TRUE(WriteManifest(*files_, folder, manifest).ok());
    return folder;
  }
  std::vector<std::string> Folders() { return *files_->List("out"); }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(ManifestTest, ReadsWhatWasWritten) {
  const std::string folder = Save(120);
  EXPECT_EQ(folder, "out/step_0000000120");
  const Result<Manifest> read = ReadManifest(*files_, folder);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Manifest expected = Make(120);
  EXPECT_EQ(read->job_name, expected.job_name);
  EXPECT_EQ(read->job_digest, expected.job_digest);
  EXPECT_EQ(read->tables_digest, expected.tables_digest);
  EXPECT_EQ(read->unknown_ids, expected.unknown_ids);
  EXPECT_EQ(read->clock, 120);
  EXPECT_EQ(read->epoch, 3u);
  EXPECT_EQ(read->epoch_start, 60);
  EXPECT_EQ(read->examples, expected.examples);
  EXPECT_EQ(read->job_json, expected.job_json);
  EXPECT_EQ(read->arithmetic, expected.arithmetic);
  EXPECT_EQ(read->row_counts, expected.row_counts);
  EXPECT_EQ(read->changes, expected.changes);
  EXPECT_EQ(read->trained_ms, 9000);
  EXPECT_EQ(read->step_times, expected.step_times);
  EXPECT_EQ(read->offsets, expected.offsets);
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[1].name, "shard_001.snapshot");
  EXPECT_EQ(read->files[1].rows, 7u);
  EXPECT_TRUE(VerifyCheckpoint(*files_, folder, *read).ok());
}

TEST_F(ManifestTest, TimesOfStepsGrow) {
  const std::vector<std::vector<StepTime>> wrong = {
      {{-1, 5}}, {{1, -5}}, {{2, 5}, {2, 6}}, {{2, 5}, {3, 4}}, std::vector<StepTime>(2000)};
  for (const std::vector<StepTime>& times : wrong) {
    const std::string folder = Save(120);
    Manifest manifest = *ReadManifest(*files_, folder);
    manifest.step_times = times;
    const Status refused = WriteManifest(*files_, folder, manifest);
    EXPECT_THAT(refused.message(), HasSubstr("times of steps that do not grow"));
  }
}

TEST_F(ManifestTest, OffsetsOfATopicAreThoseOfEachPartitionOnce) {
  const std::vector<std::vector<PartitionOffset>> wrong = {
      {{0, -1}}, {{1, 5}, {0, 5}}, {{1, 5}, {1, 6}}};
  for (const std::vector<PartitionOffset>& offsets : wrong) {
    const std::string folder = Save(120);
    Manifest manifest = *ReadManifest(*files_, folder);
    manifest.offsets = offsets;
    ASSERT_TRUE(WriteManifest(*files_, folder, manifest).ok());
    const Status refused = ReadManifest(*files_, folder).status();
    EXPECT_EQ(refused.code(), Code::kCorruption);
    EXPECT_THAT(refused.message(), HasSubstr("offsets of partitions out of order"));
  }
}

TEST_F(ManifestTest, AJobWithoutATopicHasNoOffsetsInIt) {
  const std::string folder = Save(120), path = folder + "/manifest.json";
  Manifest manifest = *ReadManifest(*files_, folder);
  manifest.offsets.clear();
  ASSERT_TRUE(WriteManifest(*files_, folder, manifest).ok());
  EXPECT_FALSE(nlohmann::json::parse(Read(path))["checkpoint"].contains("offsets"));
}

TEST_F(ManifestTest, OneOfAVersionThatKnewLessIsReadToo) {
  const std::string folder = Save(120), path = folder + "/manifest.json";
  nlohmann::json whole = nlohmann::json::parse(Read(path));
  for (const char* field : {"arithmetic", "row_counts", "changes"}) {
    ASSERT_EQ(whole["checkpoint"].erase(field), 1u);
  }
  char checksum[17];
  std::snprintf(checksum, sizeof checksum, "%016" PRIx64, HashString(whole["checkpoint"].dump(1)));
  whole["checksum"] = checksum;
  Write(path, whole.dump(1));
  const Result<Manifest> read = ReadManifest(*files_, folder);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->arithmetic.empty());
  EXPECT_EQ(read->row_counts, RowCounts());
  EXPECT_TRUE(read->changes.empty());
  EXPECT_EQ(read->clock, 120);
}

TEST_F(ManifestTest, ChecksumIsThatOfTheWholeFile) {
  const std::string folder = Save(1);
  const std::string text = Read(folder + "/shard_000.snapshot");
  const SavedFile saved = ReadManifest(*files_, folder)->files[0];
  EXPECT_EQ(saved.checksum, HashBytes(std::as_bytes(std::span(text))));
  EXPECT_EQ(saved.bytes, text.size());
}

TEST_F(ManifestTest, EveryFlippedBitOfTheManifestIsNoticed) {
  const std::string path = Save(9) + "/manifest.json";
  const std::string sound = Read(path);
  for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    Write(path, damaged);
    const Result<Manifest> read = ReadManifest(*files_, "out/step_0000000009");
    // Blanks between values have no meaning, so a change between blanks is not damage.
    if (read.ok()) {
      EXPECT_EQ(read->job_digest, Make(9).job_digest);
      EXPECT_TRUE(VerifyCheckpoint(*files_, "out/step_0000000009", *read).ok()) << bit;
    } else {
      EXPECT_EQ(read.status().code(), Code::kCorruption);
      EXPECT_THAT(read.status().message(), HasSubstr("manifest.json"));
    }
  }
}

TEST_F(ManifestTest, EveryTruncationIsNoticed) {
  const std::string path = Save(9) + "/manifest.json";
  const std::string sound = Read(path);
  for (size_t size = 0; size + 1 < sound.size(); ++size) {
    Write(path, sound.substr(0, size));
    EXPECT_EQ(ReadManifest(*files_, "out/step_0000000009").status().code(), Code::kCorruption);
  }
}

TEST_F(ManifestTest, ANonsensicalManifestIsNeverWritten) {
  Manifest manifest = Make(4);
  EXPECT_FALSE(WriteManifest(*files_, "out", manifest).ok());  // No files for two shards.
  manifest.files = {{"a", 1, 1, 1}, {"a", 1, 1, 1}};
  EXPECT_THAT(WriteManifest(*files_, "out", manifest).message(), HasSubstr("twice"));
  manifest.files[1].name = "../a";
  EXPECT_FALSE(WriteManifest(*files_, "out", manifest).ok());
}

TEST_F(ManifestTest, FindsTheNewestThatIsWhole) {
  Save(10);
  Save(20);
  Save(30);
  Save(40);
  ASSERT_TRUE(files_->RemoveAll("out/step_0000000040/manifest.json").ok());  // Not finished.
  Write("out/step_0000000030/shard_001.snapshot", "short");
  ASSERT_TRUE(files_->MakeDirectories("out/step_of_my_own").ok());

  const Result<FoundCheckpoint> found = FindCheckpoint(*files_, "out");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->folder, "out/step_0000000020");
  EXPECT_EQ(found->manifest.clock, 20);
  EXPECT_THAT(found->refused,
              ElementsAre(HasSubstr("out/step_0000000040"),
                          HasSubstr("step_0000000030/shard_001.snapshot: 5 bytes")));
  EXPECT_EQ(FindCheckpoint(*files_, "out", 20)->manifest.clock, 10);
  EXPECT_EQ(FindCheckpoint(*files_, "out", 10).status().code(), Code::kNotFound);
  EXPECT_EQ(FindCheckpoint(*files_, "nowhere").status().code(), Code::kNotFound);
}

TEST_F(ManifestTest, AMissingOrChangedFileIsNamed) {
  const std::string folder = Save(10);
  const Manifest manifest = *ReadManifest(*files_, folder);
  std::string text = Read(folder + "/shard_000.snapshot");
  text[50] ^= 1;
  Write(folder + "/shard_000.snapshot", text);
  Status status = VerifyCheckpoint(*files_, folder, manifest);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_THAT(status.message(), HasSubstr("shard_000.snapshot: checksum"));
  ASSERT_TRUE(files_->RemoveAll(folder + "/shard_000.snapshot").ok());
  status = VerifyCheckpoint(*files_, folder, manifest);
  EXPECT_THAT(status.message(), HasSubstr("shard_000.snapshot: the file is missing"));
  EXPECT_EQ(FindCheckpoint(*files_, "out").status().code(), Code::kNotFound);
}

TEST_F(ManifestTest, EachByteOfAPackIsOfOneOfItsFiles) {
  const std::string folder = "out/step_0000000005", pack = JoinPath(folder, "shards_000.pack");
  ASSERT_TRUE(files_->MakeDirectories(folder).ok());
  Manifest manifest = Make(5);
  std::string all;
  for (const char* name : {"shard_000.snapshot", "shard_001.snapshot"}) {
    const std::string bytes = std::string(50, 'x') + name;
    manifest.files.push_back({.name = name,
                              .bytes = bytes.size(),
                              .checksum = HashBytes(std::as_bytes(std::span(bytes))),
                              .rows = 7,
                              .pack = "shards_000.pack",
                              .offset = all.size()});
    all += bytes;
  }
  Write(pack, all);
  EXPECT_TRUE(VerifyCheckpoint(*files_, folder, manifest).ok());
  Write(pack, all + "y");
  Status status = VerifyCheckpoint(*files_, folder, manifest);
  EXPECT_EQ(status.code(), Code::kCorruption) << "a byte behind its last file";
  EXPECT_THAT(status.message(), HasSubstr(pack + ": 137 bytes long, the manifest says 136"));
  Write(pack, all.substr(0, 68) + "y" + all.substr(68));
  ++manifest.files[1].offset;
  status = VerifyCheckpoint(*files_, folder, manifest);
  EXPECT_EQ(status.code(), Code::kCorruption) << "a byte between its files";
  EXPECT_THAT(status.message(), HasSubstr("ends at byte 68, the next begins at 69"));
}

TEST_F(ManifestTest, ACheckpointCopiedUnderAnotherClockIsRefused) {
  const std::string text = Read(Save(10) + "/manifest.json");
  Save(20);
  Write("out/step_0000000020/manifest.json", text);
  EXPECT_EQ(FindCheckpoint(*files_, "out")->manifest.clock, 10);
}

TEST_F(ManifestTest, OpensWhatAnOperatorCallsACheckpoint) {
  const std::string folder = Save(10);
  EXPECT_EQ(OpenCheckpoint(*files_, folder)->folder, folder);
  EXPECT_EQ(OpenCheckpoint(*files_, "out")->folder, folder);
  ASSERT_TRUE(files_->MakeDirectories("run/checkpoint").ok());
  EXPECT_EQ(OpenCheckpoint(*files_, "run").status().code(), Code::kNotFound);
  EXPECT_THAT(OpenCheckpoint(*files_, "nowhere").status().message(), HasSubstr("nowhere"));
}

TEST_F(ManifestTest, PrunesOldAndUnfinishedOnes) {
  for (const Clock clock : {10, 20, 30, 40, 50}) Save(clock);
  ASSERT_TRUE(files_->RemoveAll("out/step_0000000030/manifest.json").ok());
  ASSERT_TRUE(files_->RemoveAll("out/step_0000000050/manifest.json").ok());
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 2).ok());
  EXPECT_THAT(Folders(), ElementsAre("step_0000000020", "step_0000000040", "step_0000000050"));
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 0).ok());
  EXPECT_THAT(Folders(), ElementsAre("step_0000000040", "step_0000000050"));
}

// Values of the reference code without vectors.
TEST(HashBytes, IsTheSameOnEveryProcessor) {
  std::vector<std::byte> bytes(100000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  const auto hash = [&](size_t size) { return HashBytes(std::span(bytes).first(size), 7); };
  EXPECT_EQ(hash(512), 0xd7be620a0c715e3eu);
  EXPECT_EQ(hash(513), 0x5b4c829d3d4d29b8u);
  EXPECT_EQ(hash(1000), 0x4a8419feaf6594cau);
  EXPECT_EQ(hash(100000), 0xeafa6da66936f263u);
}

TEST(HashStream, EqualsTheHashOfTheWholeHoweverItIsCut) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(RandomAt(3, static_cast<uint64_t>(i)));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    HashStream stream;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t size = std::min<size_t>(random.Below(700), bytes.size() - begin);
      stream.Append(bytes.subspan(begin, size));
      begin += size;
    }
    EXPECT_EQ(stream.Value(), HashBytes(bytes));
  }
}

}  // namespace
}  // namespace hdps
