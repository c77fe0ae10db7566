// Tests that shards of FlatRows take a delta on several threads while others read them.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/shard_map.h"
#include "common/base/shared_mutex.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/protocol/manifest.h"
#include "embedding/flat_shard.h"
#include "embedding/snapshot/snapshot.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

constexpr uint32_t kShards = 4, kDim = 4;
constexpr Key kKeys = 4000;
constexpr Clock kSteps = 12;

std::vector<TableSlice> EmptyTables(ShardId shard) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = kDim;
  spec.optimizer.record = &RecordOf(OptimizerKind::kSgd);
  std::vector<TableSlice> tables;
  tables.emplace_back(spec, TableId{0}, 1, RowPlacement{shard, kShards, nullptr});
  return tables;
}

uint32_t ShardOfKey(Key key) { return ShardOf(key, ShardBy::kKey, kShards).value; }

// A checkpoint of each step, the first one whole. All weights are the step; step s has the keys
// below kKeys + 300 s, so that indexes grow.
std::vector<CheckpointPart> SaveSteps(FileSystem& files) {
  std::vector<std::vector<TableSlice>> shards;
  for (uint32_t s = 0; s < kShards; ++s) shards.push_back(EmptyTables({s}));
  std::vector<CheckpointPart> chain;
  for (Clock step = 1; step <= kSteps; ++step) {
    const std::vector<float> row(kDim, static_cast<float>(step));
    for (Key key = 0; key < kKeys + 300 * static_cast<Key>(step); ++key) {
      shards[ShardOfKey(key)][0].Store({&key, 1}, kDim, row, step);
    }
    CheckpointPart& part = chain.emplace_back();
    part.folder = JoinPath("ck", CheckpointName(step));
    part.manifest.tables_digest = 7;
    part.manifest.num_shards = kShards;
    part.manifest.clock = step;
    part.manifest.base_clock = step == 1 ? kNoClock : step - 1;
    for (uint32_t s = 0; s < kShards; ++s) {
      const SnapshotHeader header{7, {s}, kShards, step, part.manifest.base_clock};
      const auto saved = WriteSnapshot(files, part.folder, header, {&shards[s][0]});
      EXPECT_TRUE(saved.ok()) << saved.status().message();
      part.manifest.files.push_back(*saved);
      shards[s][0].MarkSaved(step);
    }
  }
  return chain;
}

class Model {
 public:
  Model(FileSystem& files, const CheckpointPart& whole) : files_(files) {
    for (uint32_t s = 0; s < kShards; ++s) {
      shards_.push_back(std::make_unique<FlatShard>(ShardId{s}, EmptyTables({s})));
      EXPECT_TRUE(shards_.back()->Load(files, {whole}).ok());
    }
  }
  // Stages each shard on a thread of its own.
  void Apply(const CheckpointPart& delta) {
    std::vector<Status> staged(kShards);
    {
      std::vector<std::unique_ptr<Thread>> threads;
      for (uint32_t s = 0; s < kShards; ++s) {
        threads.push_back(StartThread("stages", [this, s, &staged, &delta] {
          staged[s] = shards_[s]->Stage(files_, delta);
        }));
      }
    }
    for (const Status& status : staged) EXPECT_TRUE(status.ok()) << status.message();
    {
      WriterLock lock(mutex_);
      for (const auto& shard : shards_) shard->Publish();
    }
    for (const auto& shard : shards_) shard->Settle();
  }
  // Returns the step of all weights, or 0 if they are not all of one.
  float Read() {
    std::vector<Key> keys;
    for (Key key = 0; key < kKeys; key += 3) keys.push_back(key);
    float step = 0;
    bool mixed = false;
    ReaderLock lock(mutex_);
    std::vector<const FlatRows*> of;
    for (const Key key : keys) of.push_back(&shards_[ShardOfKey(key)]->rows({0}));
    FlatRows::ForEachFound(of, keys, [&](size_t k, const std::byte* row) {
      if (row == nullptr) return void(mixed = true);
      float weights[kDim];
      of[k]->ReadWeightsOf(row, weights);
      if (step == 0) step = weights[0];
      for (const float weight : weights) mixed = mixed || weight != step;
    });
    return mixed ? 0 : step;
  }

 private:
  FileSystem& files_;
  SharedMutex mutex_;
  std::vector<std::unique_ptr<FlatShard>> shards_;
};

TEST(FlatThreads, ShardsAreStagedTogetherWhileOthersRead) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::vector<CheckpointPart> chain = SaveSteps(*files);
  Model model(*files, chain[0]);
  std::atomic<bool> stops = false;
  std::atomic<int> begun = 0, wrong = 0;
  std::vector<std::unique_ptr<Thread>> readers;
  for (int t = 0; t < 3; ++t) {
    readers.push_back(StartThread("reads", [&] {
      float last = 1;
      for (bool first = true; first || !stops; first = false) {
        const float step = model.Read();
        wrong += step < last ? 1 : 0;
        last = step;
        if (first) ++begun;
      }
    }));
  }
  while (begun < 3) {
  }
  for (size_t at = 1; at < chain.size(); ++at) {
    model.Apply(chain[at]);
    EXPECT_EQ(model.Read(), static_cast<float>(at + 1));
  }
  stops = true;
  readers.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hdps
