// Tests whole jobs whose tables share rows against the same jobs with rows apart.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/worker/role/small_job.h"

namespace hdps {
namespace {

const Overrides kApart = {"cluster.join_tables=false"};

class JoinedTablesJob : public SmallJobTest {
 protected:
  JoinedTablesJob() : SmallJobTest({}, SmallRows(1000, 1, Draw), SmallRows(100, 2, Draw)) {}
  static std::pair<uint64_t, uint64_t> Draw(Random& random, uint64_t) {
    return {random.Below(100), random.Below(50)};
  }
  std::string Digest(const ClusterSize& cluster, const Overrides& overrides) {
    return Summary(cluster, overrides)["digest"];
  }
};

TEST_F(JoinedTablesJob, EveryRecipeHasOneDigest) {
  std::set<std::string> all;
  for (const char* recipe : {"wide_deep", "fm", "deepfm", "nfm", "xdeepfm", "fibinet"}) {
    const Overrides own = {std::string("model.type=") + recipe};
    std::set<std::string> digests;
    for (const Overrides& rows : {Overrides(), kApart}) {
      digests.insert(Digest({1, 1}, own + rows + Overrides{"train.micro_batches=2"}));
      digests.insert(Digest({1, 3}, own + rows + Overrides{"train.micro_batches=2"}));
      digests.insert(Digest({2, 2}, own + rows));
    }
    EXPECT_EQ(digests.size(), 1u) << recipe;
    all.insert(digests.begin(), digests.end());
  }
  EXPECT_EQ(all.size(), 6u);
}

TEST_F(JoinedTablesJob, InEveryModeOfTravel) {
  const std::vector<Overrides> cases = {{"parallel.interleave_num=2"},
                                        {"train.mode=async", "train.lookahead=0"},
                                        {"train.lookahead=3"},
                                        {"parallel.wire=bf16", "model.weights=bf16"},
                                        {"train.clip_norm=0.5"},
                                        {"model.slice_mode=table_row_slice"},
                                        {"model.policy.evict_after_steps=3"},
                                        {"model.policy.max_rows=80"},
                                        {"model.policy.admit_after=2"}};
  for (const Overrides& own : cases) {
    EXPECT_EQ(Digest({1, 2}, own), Digest({1, 1}, own + kApart)) << own[0];
  }
}

// What one has saved, whole or as changes, the other goes on from.
TEST_F(JoinedTablesJob, GoesOnFromWhatTheOtherHasSaved) {
  const Overrides own = {"model.policy.evict_after_steps=5", "checkpoint.every_steps=8",
                         "checkpoint.delta_every_steps=3", "checkpoint.keep=9"};
  const std::string whole = Digest({1, 2}, own + kApart);
  for (const bool joined_first : {true, false}) {
    const Overrides first = joined_first ? Overrides() : kApart;
    const Overrides then = joined_first ? kApart : Overrides();
    const std::string folder = joined_first ? "joined_first" : "apart_first";
    SummaryInto(folder, {1, 3}, own + first + Overrides{"train.max_steps=23"});
    const nlohmann::json resumed = SummaryInto(folder, {1, 1}, own + then);
    EXPECT_EQ(resumed["resumed_from"], 23);
    EXPECT_EQ(resumed["digest"], whole) << folder;
  }
}

}  // namespace
}  // namespace hdps
