// Tests which checkpoints a job continues from: its own, and with --resume=changed also those of a
// job whose changeable settings had other values.
#include "scheduler/plan/checkpoint_catalog.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kJob = R"({
  "name": "clicks",
  "data": {"train": ["a.csv"], "shuffle_rows": 10,
           "columns": [{"name": "y", "type": "label"}, {"name": "c"}, {"name": "d"}]},
  "model": {"type": "wide_deep"},
  "train": {"batch_size": 32},
  "cluster": {"shards": 2}
})";

class CheckpointCatalogTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Job> JobWith(const std::vector<std::string>& overrides) {
    Result<Job> job = ParseJob(kJob, "job.json", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return std::make_shared<const Job>(*std::move(job));
  }
  CheckpointCatalog Catalog(const std::vector<std::string>& overrides,
                            Resume resume = Resume::kAuto) {
    return CheckpointCatalog(*files_, "out", JobWith(overrides), resume);
  }
  // Saves a checkpoint of the catalog's job at `clock`, in an epoch that began at `epoch_start`.
  void Save(CheckpointCatalog* catalog, Clock clock, Clock epoch_start) {
    const std::string folder = *catalog->Prepare(clock, 0);
    Manifest manifest;
    manifest.clock = clock;
    manifest.epoch_start = epoch_start;
    manifest.epoch_sums = {.examples = 7, .loss_sum = 3};
    manifest.row_counts.admitted = 5;
    for (const char* name : {"shard_000.snapshot", "shard_001.snapshot"}) {
      std::unique_ptr<WritableFile> file = *files_->Create(JoinPath(folder, name));
      ASSERT_TRUE(file->Close().ok());
      manifest.files.push_back(*ChecksumFile(*files_, folder, name));
    }
    ASSERT_TRUE(catalog->Commit(std::move(manifest)).ok());
  }
  void SaveFirst(Clock clock, Clock epoch_start) {
    CheckpointCatalog first = Catalog({});
    Save(&first, clock, epoch_start);
  }
  std::string Refused(const std::vector<std::string>& overrides, Resume resume = Resume::kAuto) {
    const auto found = Catalog(overrides, resume).FindStart();
    EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
    return found.status().message();
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(CheckpointCatalogTest, ARefusalNamesWhatDiffersAndTheWaysOut) {
  SaveFirst(100, 60);
  EXPECT_TRUE(Catalog({"train.epochs=9"}).FindStart().ok());
  EXPECT_THAT(Refused({"train.batch_size=64"}),
              AllOf(HasSubstr("also called 'clicks', with other settings"),
                    HasSubstr("train.batch_size is 64, the checkpoint's is 32"),
                    HasSubstr("--set=train.batch_size=32"), HasSubstr("another --out"),
                    HasSubstr("--resume=changed"), Not(HasSubstr("does not help"))));
  EXPECT_THAT(
      Refused({"train.batch_size=64", "seed=2", "train.mode=async", "parallel.wire=fp16",
               "train.micro_batches=2"}),
      AllOf(HasSubstr("seed is 2, the checkpoint's is 1; train.mode is async, the "
                      "checkpoint's is sync; train.batch_size is 64"),
            HasSubstr("and 2 more"), HasSubstr("--resume=changed does not help, for seed stays")));
  EXPECT_THAT(Refused({"name=other", "model.embedding_dim=8"}),
              AllOf(HasSubstr("'clicks', not 'other'"),
                    HasSubstr("model.tables.1.dim (deep) is 8, the checkpoint's is 16")));
  EXPECT_THAT(Refused({"model.embedding_dim=8"}, Resume::kChanged),
              HasSubstr("--resume=changed does not help, for model.tables.1.dim (deep) stays"));
}

TEST_F(CheckpointCatalogTest, AChangeIsRememberedByAllCheckpointsBehindIt) {
  SaveFirst(100, 60);
  CheckpointCatalog changed = Catalog({"model.deep_optimizer.learning_rate=0.5"}, Resume::kChanged);
  ASSERT_TRUE(changed.FindStart().ok());
  const SettingChange rate = {100, "model.tables.1.optimizer.learning_rate (deep)", "0.001", "0.5"};
  EXPECT_THAT(changed.changes(), ElementsAre(rate));
  EXPECT_THAT(changed.TakeNotices(), ElementsAre(HasSubstr("from step 100 on the job is another")));
  EXPECT_EQ(changed.newest()->manifest.epoch_start, 60);
  EXPECT_EQ(changed.DeltaBase(), 0) << "changes of rows would build on another job's";
  Save(&changed, 120, 60);
  EXPECT_EQ(changed.DeltaBase(), 120);

  // The checkpoint at 120 belongs to the changed job; another change follows the first.
  CheckpointCatalog same = Catalog({"model.deep_optimizer.learning_rate=0.5"});
  ASSERT_TRUE(same.FindStart().ok());
  EXPECT_THAT(same.changes(), ElementsAre(rate));
  EXPECT_THAT(same.TakeNotices(), IsEmpty());
  CheckpointCatalog again =
      Catalog({"model.deep_optimizer.learning_rate=0.5", "train.clip_norm=2"}, Resume::kChanged);
  ASSERT_TRUE(again.FindStart().ok());
  EXPECT_THAT(again.changes(), ElementsAre(rate, SettingChange{120, "train.clip_norm", "0", "2"}));
  EXPECT_EQ(again.newest()->manifest.row_counts.admitted, 5u);
  EXPECT_THAT(Refused({}), HasSubstr("the checkpoint's is 0.5"));
}

TEST_F(CheckpointCatalogTest, UnderAnotherBatchSizeItGoesOnAtTheSameRow) {
  SaveFirst(100, 60);  // 40 steps of 32 rows: 1280.
  const auto place = [this](const std::vector<std::string>& overrides) {
    CheckpointCatalog catalog = Catalog(overrides, Resume::kChanged);
    EXPECT_TRUE(catalog.FindStart().ok());
    const Manifest& manifest = catalog.newest()->manifest;
    const bool anew = catalog.TakeNotices().back().starts_with("epoch 1 begins anew");
    EXPECT_EQ(manifest.epoch_sums.examples, anew ? 0u : 7u);
    EXPECT_EQ(manifest.epoch_start == manifest.clock, anew);
    return manifest.clock - manifest.epoch_start;
  };
  EXPECT_EQ(place({"train.batch_size=64"}), 20);
  EXPECT_EQ(place({"train.batch_size=16"}), 80);
  EXPECT_EQ(place({"train.batch_size=1280"}), 1);
  EXPECT_EQ(place({"train.batch_size=48"}), 0) << "1280 rows are no whole number of steps";
  EXPECT_EQ(place({"train.batch_size=8"}), 0) << "160 steps were not made yet";
  EXPECT_EQ(place({"data.shuffle_rows=0"}), 0) << "the rows come in another order";
  EXPECT_EQ(place({"train.mode=async"}), 40);
}

}  // namespace
}  // namespace hdps
