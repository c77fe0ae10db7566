// Tests whole jobs with rows cached at the workers: the result must not change.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "tests/worker/role/small_job.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

// Skewed keys that differ in the second half, so that the hot keys change on the way. 330 rows in
// steps of 20: the last step of an epoch has 10.
std::string Rows(uint64_t count, uint64_t seed) {
  const Zipf zipf(60, 1.1);
  return SmallRows(count, seed, [&](Random& random, uint64_t row) {
    const uint64_t a = zipf.Draw(random);
    return std::pair(a, zipf.Draw(random) + (row < count / 2 ? 0 : 40));
  });
}

const Overrides kKept = {"model.vocab_cache_size=20"};

class KeptRowsTest : public SmallJobTest {
 protected:
  KeptRowsTest()
      : SmallJobTest({"data.shuffle_rows=0", "train.batch_size=20", "train.cache_refresh_steps=3"},
                     Rows(330, 1), Rows(101, 2)) {}
};

TEST_F(KeptRowsTest, KeptRowsChangeNothingWhateverTheCluster) {
  for (const uint32_t workers : {1, 2, 4}) {
    const auto off = Summary({workers, 1}, {});
    EXPECT_TRUE(off["cache"].is_null());
    for (const uint32_t servers : {1, 3}) {
      // Rows of the next steps are on their way when others are chosen.
      const std::string lookahead = std::to_string(workers == 1 ? 0 : workers * servers % 5);
      const auto on =
          Summary({workers, servers}, kKept + Overrides{"train.lookahead=" + lookahead});
      EXPECT_EQ(on["digest"], off["digest"])
          << workers << " workers, " << servers << " servers, lookahead " << lookahead;
      EXPECT_EQ(on["train_logloss"], off["train_logloss"]);
      EXPECT_EQ(on["eval_auc"], off["eval_auc"]);
      EXPECT_EQ(on["rows"], off["rows"]);
      EXPECT_GT(on["cache"]["hit_rate"], 0.3);
      // More rows came in than fit, so some went back to the servers. One group of tables: a row of
      // 4 weights with Adam's state, and one of 1 with FTRL's.
      EXPECT_GT(on["cache"]["swaps"], 23 * workers);
      EXPECT_EQ(on["cache"]["bytes"], 20 * (12 + 3) * 4 * workers);
    }
  }
}

TEST_F(KeptRowsTest, NorDoesWhatElseTheJobSays) {
  std::vector<Overrides> variants = {
      {"parallel.gradients_mean=false"},
      {"parallel.cross_batch=true"},
      {"parallel.dataset_strategy=full_batch"},
      {"parallel.dense_exchange=allreduce"},
      {"train.micro_batches=3"},
      {"model.deep_optimizer.kind=adamw", "model.deep_optimizer.weight_decay=0.1"},
      // The last step of an epoch has a row for only one worker.
      {"train.batch_size=47", "data.max_bad_rows=0"}};
  for (const OptimizerRecord& optimizer : kOptimizers) {
    if (optimizer.whole_tensors) continue;
    const std::string kind = std::string("_optimizer.kind=") + optimizer.name;
    variants.push_back({"model.deep" + kind, "model.wide" + kind});
  }
  for (const Overrides& variant : variants) {
    const auto off = Summary({3, 2}, variant);
    EXPECT_EQ(Summary({3, 2}, variant + kKept)["digest"], off["digest"]) << variant[0];
  }
}

TEST_F(KeptRowsTest, OneWorkerWithPartsIsAsManyWorkers) {
  const Overrides parts = {"train.micro_batches=3"};
  const auto off = Summary({3, 1}, {});
  EXPECT_EQ(Summary({1, 1}, parts + kKept)["digest"], off["digest"]);
  EXPECT_EQ(Summary({3, 1}, kKept)["digest"], off["digest"]);
}

TEST_F(KeptRowsTest, EveryTableMayKeepItsOwnNumberOfRows) {
  const Job job = *LoadJob(*files_, "job.json", {});
  // With all settings written out.
  ASSERT_TRUE(WriteFileAtomically(*files_, "job.json", PrintJob(job)).ok());
  const auto off = Summary({2, 2}, {});
  for (const Overrides& kept :
       {Overrides{"model.tables.0.vocab_cache_size=7"},
        Overrides{"model.tables.1.vocab_cache_size=1"},
        Overrides{"model.tables.0.vocab_cache_size=500", "model.tables.1.vocab_cache_size=9"}}) {
    EXPECT_EQ(Summary({2, 2}, kept)["digest"], off["digest"]) << kept[0];
  }
}

TEST_F(KeptRowsTest, ARunMayStopAndGoOnWithOrWithoutThem) {
  const auto straight = Summary({2, 2}, {"checkpoint.every_steps=4"});
  SummaryInto("stopped", {2, 2}, kKept + Overrides{"train.max_steps=5"});
  const auto on = SummaryInto("stopped", {2, 3}, kKept + Overrides{"checkpoint.every_steps=4"});
  EXPECT_EQ(on["resumed_from"], 5);
  EXPECT_EQ(on["digest"], straight["digest"]);
  SummaryInto("other", {2, 1}, kKept + Overrides{"train.max_steps=8"});
  EXPECT_EQ(SummaryInto("other", {2, 2}, {})["digest"], straight["digest"]);
}

}  // namespace
}  // namespace hdps
