// Tests whole jobs with schedules, penalties of the loss and clipping: the place of an update
// changes no bit, and each term has its effect.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/role/small_job.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

// 310 rows in steps of 50: the last step of an epoch has 10. Skewed keys, so that some are kept.
std::string Rows(uint64_t count, uint64_t seed) {
  const Zipf zipf(60, 1.1);
  return SmallRows(count, seed, [&](Random& random, uint64_t) {
    const uint64_t a = zipf.Draw(random);
    return std::pair(a, zipf.Draw(random));
  });
}

const Overrides kSchedule = {
    R"(train.schedule={"kind": "cosine", "warmup_steps": 3, "decay_steps": 9, "least": 0.1})"};
const Overrides kPenalties = {"model.wide_loss_l1=0.001",  "model.wide_loss_l2=0.01",
                              "model.deep_loss_l1=0.0001", "model.deep_loss_l2=0.02",
                              "model.dense_loss_l1=0.001", "model.dense_loss_l2=0.01"};
const Overrides kClipValue = {"train.clip_value=0.002"};
const Overrides kClipNorm = {"train.clip_norm=0.1"};

class UpdateTermsTest : public SmallJobTest {
 protected:
  UpdateTermsTest()
      : SmallJobTest({"data.shuffle_rows=0", "train.cache_refresh_steps=3"}, Rows(310, 1),
                     Rows(101, 2)) {}
  std::string Digest(const ClusterSize& cluster, const Overrides& overrides) {
    const nlohmann::json summary = Summary(cluster, overrides);
    return summary.is_null() ? "" : summary["digest"];
  }
  // Compares all members that may make an update: other servers, as many parts, ranks, or workers
  // that cache rows.
  void ExpectOneDigest(const Overrides& terms) {
    const std::string digest = Digest({3, 1}, terms);
    EXPECT_EQ(Digest({3, 2}, terms), digest);
    EXPECT_EQ(Digest({3, 4}, terms), digest);
    EXPECT_EQ(Digest({1, 2}, terms + Overrides{"train.micro_batches=3"}), digest);
    const Overrides allreduce = {"parallel.dense_exchange=allreduce"};
    const Overrides kept = {"model.vocab_cache_size=20"};
    EXPECT_EQ(Digest({3, 2}, terms + allreduce), digest) << "allreduce";
    EXPECT_EQ(Digest({3, 2}, terms + kept), digest) << "kept rows";
    EXPECT_EQ(Digest({1, 2}, terms + kept + Overrides{"train.micro_batches=3"}), digest);
    EXPECT_EQ(Digest({3, 2}, terms + kept + allreduce + Overrides{"train.lookahead=2"}), digest);
    EXPECT_EQ(Digest({3, 2}, terms + Overrides{"cluster.replicas=1"}), digest) << "replicas";
  }
};

TEST_F(UpdateTermsTest, SchedulesAreTheSameWhoeverUpdates) { ExpectOneDigest(kSchedule); }
TEST_F(UpdateTermsTest, PenaltiesAreTheSameWhoeverUpdates) { ExpectOneDigest(kPenalties); }
TEST_F(UpdateTermsTest, ClippingByValueIsTheSameWhoeverUpdates) { ExpectOneDigest(kClipValue); }
TEST_F(UpdateTermsTest, ClippingByNormIsTheSameWhoeverUpdates) { ExpectOneDigest(kClipNorm); }
TEST_F(UpdateTermsTest, AllOfThemAreTheSameWhoeverUpdates) {
  ExpectOneDigest(kSchedule + kPenalties + kClipValue + kClipNorm +
                  Overrides{"model.dense_optimizer.kind=lamb"});
}

TEST_F(UpdateTermsTest, EachHasAnEffect) {
  const std::string plain = Digest({2, 1}, {});
  std::vector<Overrides> variants = {kSchedule, kClipValue, kClipNorm};
  for (const std::string& penalty : kPenalties) variants.push_back({penalty});
  for (const char* place : {"model.deep_schedule", "model.dense_schedule"}) {
    variants.push_back({std::string(place) + R"(={"kind": "step", "decay_steps": 4})"});
  }
  for (const Overrides& variant : variants) EXPECT_NE(Digest({2, 1}, variant), plain) << variant[0];
}

// Terms that change no update change no bit.
TEST_F(UpdateTermsTest, WhatIsNeverReachedChangesNothing) {
  for (const Overrides& way : {Overrides{}, Overrides{"parallel.dense_exchange=allreduce"},
                               Overrides{"model.vocab_cache_size=20"}}) {
    const std::string plain = Digest({2, 2}, way);
    EXPECT_EQ(Digest({2, 2}, way + Overrides{"train.clip_norm=1e6"}), plain);
    EXPECT_EQ(Digest({2, 2}, way + Overrides{"train.clip_value=1e6"}), plain);
    EXPECT_EQ(
        Digest({2, 2}, way + Overrides{R"(train.schedule={"kind": "step", "decay_steps": 99})"}),
        plain);
  }
}

// A table's own schedule replaces the common one; if both tables have their own, the common one has
// no effect.
TEST_F(UpdateTermsTest, OneATableTakesThePlaceOfTheOneForAll) {
  const std::string constant = R"(={"kind": "constant"})";
  const Overrides own = {"model.deep_schedule" + constant, "model.dense_schedule" + constant};
  EXPECT_EQ(Digest({1, 1}, kSchedule + own), Digest({1, 1}, {}));
  EXPECT_NE(Digest({1, 1}, kSchedule + Overrides{own[0]}), Digest({1, 1}, {}));
}

TEST_F(UpdateTermsTest, AWorkerAloneIsTheSameInAnyMode) {
  const Overrides async = {"train.mode=async"}, many = kSchedule + kPenalties + kClipValue;
  EXPECT_EQ(Digest({1, 2}, many + async), Digest({1, 1}, many));
  // A worker clips before its gradients become means, the servers of sync after it: the same bits
  // for a mean of 64 examples. Running averages are not gradients, and are not clipped.
  const Overrides of_64 = {"train.batch_size=64", "train.max_steps=4"};
  for (const Overrides& model : {Overrides{}, Overrides{"model.batch_norm=true"}}) {
    const std::string clipped = Digest({1, 1}, model + of_64 + kClipNorm);
    EXPECT_EQ(Digest({1, 2}, model + of_64 + kClipNorm + async), clipped);
    EXPECT_NE(Digest({1, 1}, model + of_64), clipped) << "gradients are larger";
  }
  const auto both = Summary({2, 2}, kClipNorm + Overrides{"train.mode=async"});
  EXPECT_TRUE(std::isfinite(both["train_logloss"].get<double>()));
}

// The count of steps continues after a stop.
TEST_F(UpdateTermsTest, AJobThatGoesOnHasTheScheduleOfOneThatNeverStopped) {
  const Overrides terms = kSchedule + kClipNorm;
  const std::string whole = Digest({2, 2}, terms);
  SummaryInto("stopped", {2, 2}, terms + Overrides{"train.max_steps=5"});
  EXPECT_EQ(SummaryInto("stopped", {2, 2}, terms)["digest"], whole);
}

}  // namespace
}  // namespace hdps
