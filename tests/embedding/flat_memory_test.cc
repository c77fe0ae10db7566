// Tests that a shard is written and mapped for serving without its rows ever being in memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest.h"
#include "embedding/flat_file.h"
#include "embedding/snapshot/snapshot.h"

namespace hdps {
namespace {

constexpr uint32_t kDim = 256;
constexpr Key kRows = 60'000;
constexpr uint64_t kContent = kRows * (sizeof(Key) + kDim * sizeof(float));  // 62 MB.

std::vector<TableSlice> EmptyTables() {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = kDim;
  spec.optimizer.record = &RecordOf(OptimizerKind::kSgd);
  std::vector<TableSlice> tables;
  tables.emplace_back(spec, TableId{0}, 3, RowPlacement{{0}, 1, nullptr});
  return tables;
}

// Saves all rows at clock 10, and a tenth of them again as a delta at clock 20.
std::vector<CheckpointPart> SaveChain(FileSystem& files, const std::string& root) {
  std::vector<TableSlice> tables = EmptyTables();
  std::vector<CheckpointPart> chain;
  for (const Clock clock : {10, 20}) {
    const std::vector<float> row(kDim, static_cast<float>(clock));
    for (Key key = 0; key < kRows; key += clock == 10 ? 1 : 10) {
      tables[0].Store({&key, 1}, kDim, row, clock);
    }
    const Clock base = clock == 10 ? kNoClock : 10;
    CheckpointPart& part = chain.emplace_back();
    part.folder = JoinPath(root, CheckpointName(clock));
    EXPECT_TRUE(files.MakeDirectories(part.folder).ok());
    const auto saved = WriteSnapshot(files, part.folder, {77, {0}, 1, clock, base}, {&tables[0]});
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    tables[0].MarkSaved(clock);
    part.manifest.tables_digest = 77;
    part.manifest.num_shards = 1;
    part.manifest.clock = clock;
    part.manifest.base_clock = base;
    part.manifest.files = {*saved};
  }
  return chain;
}

uint64_t BytesInStatus(FileSystem& files, const std::string& name) {
  const std::string status = *ReadWholeFile(files, "/proc/self/status", 1 << 16);
  const size_t digit = status.find_first_of("0123456789", status.find(name));
  uint64_t kib = 0;
  std::from_chars(status.data() + digit, status.data() + status.size(), kib);
  return kib << 10;
}

TEST(FlatMemoryTest, RowsAreNeverInMemoryTogether) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string root = testing::TempDir() + "hdps_flat_" + std::to_string(::getpid());
  const std::vector<CheckpointPart> chain = SaveChain(*files, root);
  const std::string folder = JoinPath(root, "flat");
  ASSERT_TRUE(files->MakeDirectories(folder).ok());
  std::vector<TableSlice> empty = EmptyTables();
  // The system forgets the largest memory so far.
  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) {
    GTEST_SKIP() << "/proc/self/clear_refs cannot be written here";
  }
  const uint64_t before = BytesInStatus(*files, "VmRSS:");
  const auto written = WriteFlat(*files, folder, chain, {0}, {&empty[0]});
  ASSERT_TRUE(written.ok()) << written.status().message();
  const auto mapped = MapFlat(*files, folder, *written, {77, {0}, 1, 20, kNoClock}, {&empty[0]});
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  const uint64_t most = BytesInStatus(*files, "VmHWM:") - before;
  std::printf("figure: memory of %llu MiB of rows while they are written and mapped: %.1f MiB\n",
              static_cast<unsigned long long>(kContent >> 20),
              static_cast<double>(most) / (1 << 20));
  // Twice the index of 0.4 MB, the keys of the delta, and pieces of 1 MiB.
  EXPECT_LT(most, kContent / 4);
  uint64_t changed = 0;
  EXPECT_TRUE(mapped->tables[0]
                  ->VisitRows([&](std::span<const Key> keys, std::span<const float> rows) {
                    for (size_t k = 0; k < keys.size(); ++k) {
                      EXPECT_EQ(rows[k * kDim], keys[k] % 10 == 0 ? 20.0f : 10.0f);
                      changed += rows[k * kDim] == 20.0f ? 1 : 0;
                    }
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(mapped->tables[0]->num_rows(), kRows);
  EXPECT_EQ(changed, kRows / 10);
  EXPECT_TRUE(files->RemoveAll(root).ok());
}

}  // namespace
}  // namespace hdps
