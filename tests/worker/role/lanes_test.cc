// Tests whole jobs whose steps have lanes: statistics over the whole batch, and copies that take
// turns.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/role/small_job.h"

namespace hdps {
namespace {

// 310 rows in steps of 50: the last step of an epoch has 10. With four workers some steps of 6 rows
// have none for two of them.
std::string Rows(uint64_t count, uint64_t seed) {
  return SmallRows(count, seed, [](Random& random, uint64_t) {
    const uint64_t a = random.Below(12);
    return std::pair(a, random.Below(30));
  });
}

class LanesTest : public SmallJobTest {
 protected:
  LanesTest() : SmallJobTest({}, Rows(302, 1), Rows(101, 2)) {}

  std::string Digest(const ClusterSize& cluster, const Overrides& overrides) {
    const nlohmann::json summary = Summary(cluster, overrides);
    return summary.is_null() ? "none" : summary["digest"].get<std::string>();
  }
  double Loss(const ClusterSize& cluster, const Overrides& overrides) {
    const nlohmann::json summary = Summary(cluster, overrides);
    return summary.is_null() ? -1 : summary["train_logloss"].get<double>();
  }
};

std::string Parts(uint32_t parts) { return "train.micro_batches=" + std::to_string(parts); }
std::string Copies(uint32_t copies) { return "parallel.interleave_num=" + std::to_string(copies); }

const Overrides kOverBatch = {"model.batch_norm=true", "model.batch_norm_over=batch",
                              "model.dropout=0.3"};
const Overrides kAllreduce = {"parallel.dense_exchange=allreduce"};

// The last step of an epoch has 2 rows: two of four workers have none, but take part.
TEST_F(LanesTest, WorkersThatMeetDoWhatOneDoesWithAsManyParts) {
  const double whole = Loss({1, 1}, kOverBatch);
  for (const uint32_t workers : {2, 4}) {
    SCOPED_TRACE(workers);
    const std::string parts = Digest({1, 1}, kOverBatch + Overrides{Parts(workers)});
    for (const uint32_t servers : {1, 2}) {
      EXPECT_EQ(Digest({workers, servers}, kOverBatch), parts) << servers;
      EXPECT_EQ(Digest({workers, servers}, kOverBatch + kAllreduce), parts) << servers;
    }
    // The statistics are those of the whole batch: 12 steps lose no more than sums do.
    EXPECT_NEAR(Loss({workers, 1}, kOverBatch), whole, 1e-6);
  }
  EXPECT_NE(Digest({2, 1}, {"model.batch_norm=true", "model.dropout=0.3"}),
            Digest({2, 1}, kOverBatch));
}

TEST_F(LanesTest, CopiesComeToTheSameLoss) {
  for (const Overrides& model : {Overrides{}, kOverBatch}) {
    SCOPED_TRACE(model.size());
    const Overrides sized = model + Overrides{"train.batch_size=64"};
    const double whole = Loss({1, 1}, sized);
    for (const uint32_t copies : {2, 3, 4}) {  // 64 is not a multiple of 3.
      EXPECT_NEAR(Loss({1, 1}, sized + Overrides{Copies(copies)}), whole, 1e-6) << copies;
    }
  }
}

// Two workers of three copies each equal one with two micro-batches of three copies.
TEST_F(LanesTest, CopiesOfWorkersAreThoseOfTheirParts) {
  for (const Overrides& model : {Overrides{}, kOverBatch}) {
    SCOPED_TRACE(model.size());
    const Overrides copies = model + Overrides{Copies(3)};
    EXPECT_EQ(Digest({2, 1}, copies), Digest({1, 1}, copies + Overrides{Parts(2)}));
    EXPECT_EQ(Digest({2, 2}, copies + kAllreduce), Digest({2, 1}, copies));
  }
}

// For equal slices the sum is a multiple of the mean.
TEST_F(LanesTest, TheLossOfCopiesCanBeTheirSum) {
  const Overrides even = {"train.batch_size=60", "train.max_steps=4"};
  const double mean = Loss({1, 1}, even + Overrides{Copies(3)});
  EXPECT_NEAR(Loss({1, 1}, even + Overrides{Copies(3), "parallel.loss_sum=true"}), 3 * mean, 1e-12);
  EXPECT_EQ(Loss({1, 1}, even + Overrides{"parallel.loss_sum=true"}), Loss({1, 1}, even));
}

TEST_F(LanesTest, AccumulationIsAnotherNameOfMicroBatches) {
  EXPECT_EQ(Digest({1, 1}, {"parallel.grad_accumulation_step=3"}), Digest({1, 1}, {Parts(3)}));
}

}  // namespace
}  // namespace hdps
