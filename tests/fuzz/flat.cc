// Fuzzes files of rows for serving: what is mapped can be read, changed and visited, whatever its
// index says. The manifest agrees with each file, as one that was forged would.
#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest.h"
#include "embedding/flat_file.h"
#include "embedding/snapshot/snapshot.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

constexpr ShardId kShard = {0};
constexpr const char *kFolder = "serving", *kCheckpoint = "out/step_0000000120";
constexpr SnapshotHeader kHeader{77, kShard, 1, 120, kNoClock};
constexpr size_t kVisitedMax = 1 << 16;

std::vector<TableSlice> Tables() {
  std::vector<TableSlice> tables;
  for (const uint32_t dim : {1u, 3u}) {
    TableSpec spec;
    spec.name = "dim" + std::to_string(dim);
    spec.dim = dim;
    spec.optimizer.record = &RecordOf(OptimizerKind::kSgd);
    spec.weights = dim == 3 ? WeightFormat::kBf16 : WeightFormat::kFp32;
    tables.emplace_back(spec, TableId{static_cast<uint32_t>(tables.size())}, 1,
                        RowPlacement{kShard, 1, nullptr});
  }
  return tables;
}

// Stages changes of some keys that have rows and of a new one. Two places may have the same key,
// of which one is found.
void Change(FlatRows& rows, std::vector<Key> keys) {
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.size() > 8) keys.resize(8);
  rows.Erase(keys);
  if (std::ranges::find(keys, Key{7}) == keys.end()) keys.push_back(7);
  const std::vector<float> weights(keys.size() * rows.dim(), 0.5f);
  CHECK(rows.Begin(keys.size()).ok());
  CHECK(rows.Store(keys, weights).ok());
  rows.Publish();
  rows.Settle();
  const std::vector<const FlatRows*> of(keys.size(), &rows);
  FlatRows::ForEachFound(of, keys, [&](size_t, const std::byte* row) {
    CHECK(row != nullptr);
    std::vector<float> read(rows.dim());
    rows.ReadWeightsOf(row, read);
    for (const float weight : read) CHECK_EQ(weight, 0.5f);
  });
}

Verdict Run(std::string_view bytes) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, JoinPath(kFolder, FlatName(kShard)), bytes);
  const SavedFile saved{.name = FlatName(kShard),
                        .bytes = bytes.size(),
                        .checksum = HashString(std::string(bytes)),
                        .rows = 0};
  std::vector<TableSlice> tables = Tables();
  const auto mapped = MapFlat(*files, kFolder, saved, kHeader, {&tables[0], &tables[1]});
  if (!mapped.ok()) {
    // Another version, and the file of another job, are mistakes of the operator.
    const bool mistake = mapped.status().code() == Code::kInvalidArgument;
    return Refused(mapped.status(), mistake ? Code::kInvalidArgument : Code::kCorruption);
  }
  for (const auto& rows : mapped->tables) {
    std::vector<Key> keys = {0, 1, ~Key{0}};
    CHECK(rows->VisitRows([&](std::span<const Key> some, std::span<const float> weights) {
                CHECK_EQ(weights.size(), some.size() * rows->dim());
                if (keys.size() < kVisitedMax) keys.insert(keys.end(), some.begin(), some.end());
                return Status();
              })
              .ok());
    const std::vector<const FlatRows*> of(keys.size(), rows.get());
    std::vector<float> read(rows->dim());
    FlatRows::ForEachFound(of, keys, [&](size_t k, const std::byte* row) {
      CHECK_EQ(row != nullptr, rows->Find(keys[k]).has_value());
      if (row != nullptr) rows->ReadWeightsOf(row, read);
    });
    Change(*rows, keys);
  }
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds() {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  std::vector<TableSlice> tables = Tables(), empty = Tables();
  std::vector<const TableSlice*> saved;
  for (TableSlice& table : tables) {
    const std::vector<Key> keys = {1, 2, 3, 40};
    const std::vector<float> rows(keys.size() * table.dim(), 0.25f);
    table.Store(keys, table.dim(), rows);
    saved.push_back(&table);
  }
  CheckpointPart part{kCheckpoint, {}};
  part.manifest.tables_digest = kHeader.tables_digest;
  part.manifest.num_shards = kHeader.num_shards;
  part.manifest.clock = kHeader.clock;
  const auto snapshot = WriteSnapshot(*files, kCheckpoint, kHeader, saved);
  CHECK(snapshot.ok()) << snapshot.status().message();
  part.manifest.files = {*snapshot};
  CHECK(files->MakeDirectories(kFolder).ok());
  const auto flat = WriteFlat(*files, kFolder, {part}, kShard, {&empty[0], &empty[1]});
  CHECK(flat.ok()) << flat.status().message();
  return {*ReadWholeFile(*files, JoinPath(kFolder, flat->name), 1 << 20)};
}

const AddTarget flat({"flat", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
