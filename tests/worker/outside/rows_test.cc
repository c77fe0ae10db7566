// Tests the rows that table workers train: those of a plain loop, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "embedding/memory/optimizer.h"
#include "tests/worker/outside/table_job.h"

namespace hdps {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// Steps, examples and gradients are small numbers with few digits, and the examples of a step are a
// power of two. So products and sums of gradients are exact in any order.
constexpr Clock kSteps = 50;
constexpr uint64_t kExamples = 4;  // Of each worker.

struct Drawn {
  std::vector<Key> keys;         // With repeats.
  std::vector<float> gradients;  // [keys, kWordsDim]: of the mean over kExamples.
};

Drawn Draw(Clock step, uint32_t part) {
  Random random(static_cast<uint64_t>(step) * 100 + part);
  Drawn drawn;
  for (int i = 0; i < 12; ++i) {
    drawn.keys.push_back(random.Below(30) * 0x9e3779b97f4a7c15u);
    for (uint32_t c = 0; c < kWordsDim; ++c) {
      drawn.gradients.push_back((static_cast<float>(random.Below(129)) - 64) / 256);
    }
  }
  return drawn;
}

std::string OptimizerIs(const std::string& kind) {
  return "model.tables.0.optimizer={\"kind\": \"" + kind + "\"}";
}
const std::string kUntilLast = "train.max_steps=" + std::to_string(kSteps + 1);

// Trains kSteps steps with the parts that `rank` has of `parts`, and ends with an empty one, in
// which `last` sees the rows.
void Train(TableWorker& worker, uint32_t parts, const std::function<void()>& last = {}) {
  for (Clock step = 0; step < kSteps; ++step) {
    const uint32_t share = parts / worker.workers();
    for (uint32_t part = worker.rank() * share; part < (worker.rank() + 1) * share; ++part) {
      Drawn drawn = Draw(step, part);
      // The mean over the examples of all parts of this worker.
      for (float& gradient : drawn.gradients) gradient /= static_cast<float>(share);
      PullOne(worker, kWords, drawn.keys);
      ASSERT_TRUE(worker.Push(kWords, drawn.keys, drawn.gradients).ok());
    }
    ASSERT_TRUE(worker.Advance(kExamples * share).ok());
  }
  if (last) last();
  const Status end = worker.Advance(0);
  EXPECT_EQ(end.code(), Code::kCancelled);
  EXPECT_EQ(worker.standing(), Standing::kEnded) << worker.reason();
  EXPECT_EQ(worker.clock(), kSteps + 1);
}

class RowsTest : public TableJobTest {};

TEST_F(RowsTest, AreThoseOfAPlainLoopUnderEachOptimizer) {
  struct Row {
    std::vector<float> weights, state;
  };
  for (const char* kind : {"sgd", "adagrad", "rowwise_adagrad", "lazy_adam", "ftrl"}) {
    SCOPED_TRACE(kind);
    std::map<Key, Row> rows;
    Summary({1, 2}, {OptimizerIs(kind), kUntilLast}, [&](TableWorker& worker) {
      const OptimizerSpec& spec = worker.job().tables[0].optimizer;
      for (Clock step = 0; step < kSteps; ++step) {
        const Drawn drawn = Draw(step, 0);
        const PulledRows pulled = PullOne(worker, kWords, drawn.keys);
        std::vector<float> sums(pulled.rows.size());
        for (size_t i = 0; i < drawn.keys.size() * kWordsDim; ++i) {
          sums[pulled.positions[i / kWordsDim] * kWordsDim + i % kWordsDim] += drawn.gradients[i];
        }
        for (size_t k = 0; k < pulled.keys.size(); ++k) {
          const std::span row = std::span(pulled.rows).subspan(k * kWordsDim, kWordsDim);
          Row& expected = rows[pulled.keys[k]];
          if (expected.weights.empty()) {
            expected.weights.assign(row.begin(), row.end());
            expected.state.resize(StateFloats(spec, kWordsDim));
            InitState(spec, kWordsDim, expected.state);
          }
          ASSERT_THAT(row, ElementsAreArray(expected.weights)) << "step " << step;
          UpdateRow(spec, step + 1, std::span(sums).subspan(k * kWordsDim, kWordsDim),
                    expected.weights, expected.state);
        }
        // Every other step gives the gradients of the keys, and the others those of the rows.
        ASSERT_TRUE((step % 2 == 0 ? worker.Push(pulled, sums)
                                   : worker.Push(kWords, drawn.keys, drawn.gradients))
                        .ok());
        ASSERT_TRUE(worker.Advance(kExamples).ok());
      }
      EXPECT_GE(rows.size(), 25u);
      for (const auto& [key, expected] : rows) {
        EXPECT_THAT(PullOne(worker, kWords, {key}, PullFor::kLook).rows,
                    ElementsAreArray(expected.weights));
      }
      (void)worker.Advance(0);
    });
  }
}

TEST_F(RowsTest, OfSeveralWorkersAreThoseOfOneOnAnyServersAndTwiceInARow) {
  for (const char* kind : {"sgd", "adagrad", "rowwise_adagrad", "lazy_adam", "ftrl"}) {
    SCOPED_TRACE(kind);
    const auto digest = [&](const Size& size) {
      const nlohmann::json summary = Summary(size, {OptimizerIs(kind), kUntilLast},
                                             [](TableWorker& worker) { Train(worker, 4); });
      EXPECT_EQ(summary["steps"], kSteps + 1);
      EXPECT_EQ(summary["examples"], 4 * kExamples * kSteps);
      return summary["digest"];
    };
    const nlohmann::json one = digest({1, 1});
    for (const Size& size : {Size{1, 1}, Size{2, 1}, Size{2, 3}, Size{4, 2}}) {
      EXPECT_EQ(digest(size), one) << size.workers << " workers, " << size.servers << " servers";
    }
  }
}

TEST_F(RowsTest, AreClippedByTheNormOfAllWorkers) {
  const Overrides clipped = {kUntilLast, "train.clip_norm=0.03"};
  const auto train = [](TableWorker& worker) { Train(worker, 2); };
  const nlohmann::json one = Summary({1, 1}, clipped, train)["digest"];
  EXPECT_EQ(Summary({2, 2}, clipped, train)["digest"], one);
  EXPECT_NE(Summary({1, 1}, {kUntilLast}, train)["digest"], one);
}

TEST_F(RowsTest, AskedForAheadHaveTheSameBits) {
  const auto train = [](TableWorker& worker, bool ahead) {
    std::vector<Key> keys[2];
    const auto draw = [&](Clock step) {
      const Drawn drawn = Draw(step, worker.rank());
      keys[0] = drawn.keys;
      keys[1].assign(drawn.keys.begin(), drawn.keys.begin() + 5);
    };
    const auto asked = [&] { return std::vector<AskedKeys>{{kUsers, keys[1]}, {kWords, keys[0]}}; };
    for (Clock step = 0; step < kSteps; ++step) {
      draw(step);
      const auto pulled = worker.Pull(asked(), PullFor::kStep);
      ASSERT_TRUE(pulled.ok()) << pulled.status().message();
      draw(step + (step % 5 == 4 ? 2 : 1));  // Other keys than those that will be pulled, at times.
      if (ahead) {
        ASSERT_TRUE(worker.Prefetch(asked()).ok());
      }
      for (const PulledRows& rows : *pulled) {
        // What was read decides what is pushed.
        std::vector<float> gradients(rows.rows.begin(), rows.rows.end());
        for (float& gradient : gradients) gradient *= 0.25f;
        ASSERT_TRUE(worker.Push(rows, gradients).ok());
      }
      ASSERT_TRUE(worker.Advance(kExamples).ok());
    }
    (void)worker.Advance(0);
  };
  for (const Size& size : {Size{1, 2}, Size{2, 3}}) {
    const auto digest = [&](bool ahead) {
      return Summary(size, {kUntilLast},
                     [&](TableWorker& worker) { train(worker, ahead); })["digest"];
    };
    EXPECT_EQ(digest(true), digest(false));
  }
}

TEST_F(RowsTest, AreTheSameForEachKeysGradientAndForTwoTablesWithOneList) {
  const auto train = [](TableWorker& worker, bool by_pull) {
    for (Clock step = 0; step < kSteps; ++step) {
      const Drawn drawn = Draw(step, worker.rank());
      const std::vector<Key> copy = drawn.keys;
      const std::vector<float> gradients(drawn.keys.size() * kWordsDim,
                                         0.1f * static_cast<float>(step + 1));
      const std::vector<AskedKeys> asked{{kWords, drawn.keys},
                                         {kUsers, by_pull ? drawn.keys : copy}};
      const auto pulled = worker.Pull(asked, PullFor::kStep);
      ASSERT_TRUE(pulled.ok()) << pulled.status().message();
      if (by_pull) {
        ASSERT_TRUE(worker.PushEach((*pulled)[0], gradients).ok());
      } else {
        ASSERT_TRUE(worker.Push(kWords, drawn.keys, gradients).ok());
      }
      ASSERT_TRUE(worker.Push((*pulled)[1], (*pulled)[1].rows).ok());
      ASSERT_TRUE(worker.Advance(kExamples).ok());
    }
    (void)worker.Advance(0);
  };
  const auto digest = [&](bool by_pull) {
    return Summary({1, 2}, {kUntilLast},
                   [&](TableWorker& worker) { train(worker, by_pull); })["digest"];
  };
  EXPECT_EQ(digest(true), digest(false));
}

// Lists that are long enough to be shared among threads, with the hot keys of real ones.
TEST_F(RowsTest, OfLongListsAreTheSameForEachWayToPushAndAnyThreads) {
  constexpr size_t kKeys = 20'000, kFloats = kKeys * kWordsDim;
  enum class Way { kByKey, kEach, kSums, kRefusedThenEach, kInTwo };
  const auto train = [](TableWorker& worker, Way way) {
    for (Clock step = 0; step < 4; ++step) {
      Random random(static_cast<uint64_t>(step));
      std::vector<Key> keys;
      for (size_t i = 0; i < kKeys; ++i) keys.push_back(random.Below(1 + random.Below(9'000)));
      std::vector<float> gradients, halves, rest, nothing(kFloats, -0.0f), sums;
      for (size_t i = 0; i < kFloats; ++i) {
        gradients.push_back((static_cast<float>(random.Below(129)) - 64) / 256);
      }
      const PulledRows pulled = PullOne(worker, kWords, keys);
      sums.assign(pulled.rows.size(), -0.0f);
      for (size_t i = 0; i < kFloats; ++i) {
        sums[pulled.positions[i / kWordsDim] * kWordsDim + i % kWordsDim] += gradients[i];
      }
      switch (way) {
        case Way::kByKey:
          ASSERT_TRUE(worker.Push(kWords, keys, gradients).ok());
          break;
        case Way::kEach:
          ASSERT_TRUE(worker.PushEach(pulled, gradients).ok());
          break;
        case Way::kSums:
          ASSERT_TRUE(worker.Push(pulled, sums).ok());
          break;
        case Way::kRefusedThenEach: {
          std::vector<float> bad = gradients, bad_sums = sums;
          bad[kFloats - 3] = bad_sums[7] = std::numeric_limits<float>::infinity();
          const std::string last = std::to_string(keys.back());
          EXPECT_THAT(worker.PushEach(pulled, bad).message(),
                      HasSubstr("inf, for key " + last + " at column 1"));
          EXPECT_THAT(worker.Push(pulled, bad_sums).message(), HasSubstr("at column 3"));
          ASSERT_TRUE(worker.PushEach(pulled, gradients).ok());
          EXPECT_FALSE(worker.PushEach(pulled, bad).ok());
          EXPECT_FALSE(worker.Push(pulled, bad_sums).ok());
          break;
        }
        case Way::kInTwo:  // The second adds to what the first has left.
          ASSERT_TRUE(worker.Push(pulled, sums).ok());
          ASSERT_TRUE(worker.PushEach(pulled, nothing).ok());
          break;
      }
      ASSERT_TRUE(worker.Advance(kExamples).ok());
    }
    (void)worker.Advance(0);
  };
  const auto digest = [&](uint32_t servers, Way way, Executor* executor) {
    std::vector<TableWorkerOptions> options(1);
    options[0].executor = executor;
    return Summary(
        {1, servers}, {"train.max_steps=5"}, [&](TableWorker& worker) { train(worker, way); },
        std::move(options))["digest"];
  };
  const std::unique_ptr<Executor> inline_one = NewInlineExecutor(), four = NewTbbExecutor(4);
  const nlohmann::json wanted = digest(1, Way::kByKey, inline_one.get());
  for (const uint32_t servers : {1u, 3u}) {
    for (const Way way : {Way::kEach, Way::kSums, Way::kRefusedThenEach, Way::kInTwo}) {
      EXPECT_EQ(digest(servers, way, inline_one.get()), wanted) << static_cast<int>(way);
      EXPECT_EQ(digest(servers, way, four.get()), wanted) << static_cast<int>(way);
    }
  }
}

TEST_F(RowsTest, StayInTheReplyOfOneServerAndStayWhatTheyWere) {
  for (const uint32_t servers : {1u, 2u}) {
    Summary({1, servers}, {"train.max_steps=6"}, [&](TableWorker& worker) {
      const std::vector<Key> keys = {5, 9, 5, 70, 3};
      std::vector<PulledRows> held;
      std::vector<std::vector<float>> before;
      for (Clock step = 0; step < 5; ++step) {
        held.push_back(PullOne(worker, kWords, keys));
        before.emplace_back(held.back().rows.begin(), held.back().rows.end());
        const std::vector<float> ones(keys.size() * kWordsDim, 1);
        ASSERT_TRUE(worker.PushEach(held.back(), ones).ok());
        ASSERT_TRUE(worker.Advance(1).ok());
      }
      for (size_t i = 0; i < held.size(); ++i)
        EXPECT_THAT(held[i].rows, ElementsAreArray(before[i]));
      EXPECT_NE(before[0], before[1]);
      // Gradients of each key are summed where they are sent from.
      const uint64_t rows = held.size() * before[0].size() * sizeof(float);
      EXPECT_EQ(worker.copied_bytes(), servers == 1 ? 0 : rows);
      MakeEmptySteps(worker);
    });
  }
}

TEST_F(RowsTest, OfSeveralPullsAreAddedAndTheOthersStay) {
  // The keys that were pulled and not pushed are not touched, not even by the moments of Adam.
  Summary({1, 2},
          {"model.tables.0.optimizer={\"kind\": \"lazy_adam\", \"learning_rate\": 0.5}",
           "train.max_steps=3"},
          [](TableWorker& worker) {
            const std::vector<float> ones(3 * kWordsDim, 1);
            const PulledRows before = PullOne(worker, kWords, {1, 2, 3});
            ASSERT_TRUE(worker.Push(before, ones).ok());
            ASSERT_TRUE(worker.Advance(1).ok());
            const PulledRows first = PullOne(worker, kWords, {1, 2});
            const PulledRows second = PullOne(worker, kWords, {3, 2});
            ASSERT_TRUE(worker.Push(second, std::span(ones).first(8)).ok());
            ASSERT_TRUE(worker.Push(kWords, std::vector<Key>{2}, std::span(ones).first(4)).ok());
            ASSERT_TRUE(worker.Advance(1).ok());
            const PulledRows after = PullOne(worker, kWords, {1, 2, 3});
            const auto row = [](const PulledRows& rows, Key key) {
              const auto at = std::ranges::find(rows.keys, key) - rows.keys.begin();
              return std::vector<float>(rows.rows.begin() + at * 4, rows.rows.begin() + at * 4 + 4);
            };
            EXPECT_EQ(row(after, 1), row(first, 1));
            EXPECT_NE(row(after, 2), row(first, 2));
            EXPECT_NE(row(after, 3), row(second, 3));
            MakeEmptySteps(worker);
          });
}

TEST_F(RowsTest, OfAStepThatIsGivenUpAndRowsLookedAtLeaveNothing) {
  const auto train = [](bool also) {
    return [also](TableWorker& worker) {
      for (int step = 0; step < 5; ++step) {
        const std::vector<Key> keys = {1, 2, static_cast<Key>(step)};
        if (also) {
          PullOne(worker, kWords, {77, 78}, PullFor::kLook);
          const PulledRows in_vain = PullOne(worker, kWords, {1, 5, 99});
          ASSERT_TRUE(worker.Push(in_vain, std::vector<float>(in_vain.rows.size(), 1)).ok());
          worker.GiveUpStep();
        }
        const PulledRows pulled = PullOne(worker, kWords, keys);
        ASSERT_TRUE(worker.Push(pulled, std::vector<float>(pulled.rows.size(), 0.5f)).ok());
        ASSERT_TRUE(worker.Advance(2).ok());
      }
      (void)worker.Advance(0);
    };
  };
  const nlohmann::json plain = Summary({1, 2}, {"train.max_steps=6"}, train(false));
  const nlohmann::json also = Summary({1, 2}, {"train.max_steps=6"}, train(true));
  EXPECT_EQ(also["digest"], plain["digest"]);
  EXPECT_EQ(also["rows"], plain["rows"]);
}

}  // namespace
}  // namespace hdps
