// Tests rows that are mapped: folders exported for serving, and rows on disk under a limit.
#include "tools/scoring/serving_folder.h"

#include <unistd.h>

#include "common/platform/random.h"
#include "embedding/flat_file.h"
#include "tests/tools/scoring/served_fixture.h"
#include "tools/export/export.h"
#include "tools/scoring/scored_job.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class ServingFolderTest : public PlantedSteps {
 protected:
  void SetUp() override {
    files_ = NewPosixFileSystem();
    root_ = ::testing::TempDir() + "hdps_serving_" + std::to_string(::getpid());
    ASSERT_TRUE(files_->RemoveAll(root_).ok());
    ASSERT_TRUE(files_->MakeDirectories(root_).ok());
    PlantedSteps::SetUp();
    folder_ = JoinPath(root_, "ck");
    std::vector<std::string> users, items;
    for (int i = 0; i < 300; ++i) {  // The last users have no row.
      users.push_back("u" + std::to_string(kUsers - 200 + i));
      items.push_back("i" + std::to_string(3 * i));
    }
    columns_.Add("user", users);
    columns_.Add("item", items);
  }
  void TearDown() override { EXPECT_TRUE(files_->RemoveAll(root_).ok()); }

  std::string Export(const std::string& from) {
    ExportRequest request;
    request.common.checkpoint = from;
    request.common.out = JoinPath(root_, "serving");
    request.format = "serving";
    std::ostringstream told;
    const Status exported = RunExport(request, *files_, *executor_, told);
    EXPECT_TRUE(exported.ok()) << exported.message();
    EXPECT_THAT(told.str(), HasSubstr("as serving"));
    return request.common.out;
  }
  ScoredRows Score(RowScorer& scorer) {
    auto scored = scorer.Score(columns_.Table(), {.logits = true, .unknown_keys = true});
    EXPECT_TRUE(scored.ok()) << scored.status().message();
    return *std::move(scored);
  }
  void ExpectAlike(RowScorer& scorer, RowScorer& expected) {
    const ScoredRows a = Score(scorer), b = Score(expected);
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.predictions, b.predictions);
    EXPECT_EQ(a.logits, b.logits);
    EXPECT_EQ(a.unknown_keys, b.unknown_keys);
  }

  std::string root_;
  TextColumns columns_;
};

TEST_F(ServingFolderTest, ItScoresAsItsCheckpoint) {
  Save(10);
  const CheckpointPart newest = Save(20);
  const std::string serving = Export(newest.folder);
  const auto expected = Open(Find(newest.folder), RowForm::kFlat, *executor_);
  ExpectAlike(*Open(Find(serving), RowForm::kFlat, *executor_), *expected);
  EXPECT_GT(Score(*expected).unknown_keys[0], 0u);
  // Nobody takes it for something else.
  EXPECT_THAT(
      RowScorer::Open(*files_, Find(serving), UnknownKeys::kZero, RowForm::kInt8, *executor_)
          .status()
          .message(),
      HasSubstr("was exported for serving"));
  EXPECT_EQ(Open(Find(serving), RowForm::kFlat, *executor_)->Apply(Save(30)).code(),
            Code::kInvalidArgument);
}

TEST_F(ServingFolderTest, ADamagedFileIsRefusedByName) {
  const std::string serving = Export(Save(10).folder);
  const FoundCheckpoint found = Find(serving);
  const std::string path = JoinPath(serving, FlatName({2}));
  const std::string bytes = *ReadWholeFile(*files_, path, 1 << 26);
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    std::string damaged = bytes;
    if (i % 2 == 0) damaged.resize(random.Below(bytes.size()));
    if (i % 2 == 1) damaged[random.Below(bytes.size())] ^= 1;
    WriteText(*files_, path, damaged);
    // A manifest that names the damaged file as it is: the file's own bounds must hold.
    FoundCheckpoint believed = found;
    for (SavedFile& file : believed.manifest.files) {
      if (file.name == FlatName({2})) file.bytes = damaged.size();
      if (file.name == FlatName({2})) file.checksum = HashString(damaged);
    }
    const auto opened =
        RowScorer::Open(*files_, found, UnknownKeys::kZero, RowForm::kFlat, *executor_);
    EXPECT_EQ(opened.status().code(), Code::kCorruption) << i;
    EXPECT_THAT(opened.status().message(), HasSubstr(path));
    const auto blind =
        RowScorer::Open(*files_, believed, UnknownKeys::kZero, RowForm::kFlat, *executor_);
    EXPECT_TRUE(i % 2 == 1 || !blind.ok()) << i;
    if (blind.ok()) Score(**blind);
  }
}

TEST_F(ServingFolderTest, RowsOnDiskScoreAlikeAndTakeDeltas) {
  const CheckpointPart first = Save(10), second = Save(20), third = Save(30);
  const std::string scratch = JoinPath(root_, "scratch");
  const auto opened = RowScorer::OpenOnDisk(*files_, Find(first.folder), UnknownKeys::kInitial,
                                            uint64_t{1} << 40, scratch, *executor_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_FALSE(files_->Exists(scratch));
  for (const CheckpointPart& part : {first, second, third}) {
    ASSERT_TRUE(part.manifest.clock == 10 || (*opened)->Apply(part).ok());
    ExpectAlike(**opened, *Open(Find(part.folder), RowForm::kFlat, *executor_));
    // Pages that are given back come back.
    (*opened)->loaded().KeepMemoryBelow(1, *files_);
    ExpectAlike(**opened, *Open(Find(part.folder), RowForm::kFlat, *executor_));
  }
  const auto little = RowScorer::OpenOnDisk(*files_, Find(first.folder), UnknownKeys::kInitial,
                                            4096, scratch, *executor_);
  EXPECT_EQ(little.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(little.status().message(), HasSubstr("without any row"));
  EXPECT_FALSE(files_->Exists(scratch));
}

TEST_F(ServingFolderTest, TheNeedIsKnownBeforeLoading) {
  const CheckpointPart first = Save(10), second = Save(20);
  const auto need = LeastServingNeed(*files_, Find(second.folder), job_);
  ASSERT_TRUE(need.ok()) << need.status().message();
  uint64_t rows = 0, bytes = 0;
  const auto scorer = Open(Find(second.folder), RowForm::kFlat, *executor_);
  for (const auto of_table : scorer->loaded().RowsOfTables()) rows += of_table;
  for (uint32_t s = 0; s < kShards; ++s) {
    FlatShard shard({s}, EmptySlices(job_, Find(second.folder).manifest, {s}));
    ASSERT_TRUE(shard.Load(*files_, {first}).ok());
    for (const FlatRows* const table : shard.tables()) bytes += table->bytes();
  }
  EXPECT_EQ(need->rows, rows);
  EXPECT_EQ(need->bytes, bytes);
  EXPECT_TRUE(CheckFits(*files_, *need).ok());
  const Status refused = CheckFits(*files_, {.rows = 7, .bytes = uint64_t{1} << 60});
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("the weights and keys of 7 rows take at least 1"));
  EXPECT_THAT(refused.message(), HasSubstr("are missing"));
  const auto mapped = LeastServingNeed(*files_, Find(Export(second.folder)), job_);
  EXPECT_EQ(mapped->rows, rows);
  EXPECT_LT(mapped->bytes, need->bytes);
}

}  // namespace
}  // namespace hdps
