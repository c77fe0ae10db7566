// Tests the checkpoint that serving scores with: the bits of hdps predict in every format, before
// and after deltas, while others score.
#include <atomic>
#include <deque>
#include <functional>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/platform/random.h"
#include "common/protocol/manifest.h"
#include "embedding/snapshot/snapshot.h"
#include "tests/tools/scoring/served_fixture.h"
#include "tests/tools/text_columns.h"
#include "tools/scoring/row_scorer.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr const char* kColumns =
    R"("columns": [{"name": "y", "type": "label"}, {"name": "user"},
       {"name": "age", "type": "numeric", "transform": "log1p"}, {"name": "tags", "type": "multi"}],
       "features": [{"name": "range", "kind": "bucketized", "from": ["age"], "boundaries": [5, 50]},
                    {"name": "cross", "from": ["user", "range"]}])";
constexpr const char* kDeltas =
    R"(}, "checkpoint": {"every_steps": 1000, "delta_every_steps": 2, "keep": 9)";
constexpr const char* kDeepFm = R"("type": "deepfm", "embedding_dim": 4, "hidden": [8])";

class FlatScorerTest : public ServedFixture {
 protected:
  // Returns a full checkpoint and all deltas on it.
  std::vector<CheckpointPart> Chain(const std::string& run) {
    const std::string folder = JoinPath(run, "checkpoint");
    auto chain = ReadChain(*files_, JoinPath(folder, CheckpointName(14)));
    EXPECT_TRUE(chain.ok()) << chain.status().message();
    return *std::move(chain);
  }
  // Compares the flat scores of a table with those of files of the same rows.
  void ExpectScoresOfFile(const std::string& run, const std::string& text,
                          const TextColumns& columns) {
    WriteText(*files_, "q", text);
    for (const UnknownKeys unknown : {UnknownKeys::kInitial, UnknownKeys::kZero}) {
      const auto flat = Open(Find(run), RowForm::kFlat, *executor_, unknown);
      const auto scored = flat->Score(columns.Table(), {.logits = true, .unknown_keys = true});
      ASSERT_TRUE(scored.ok()) << run << ": " << scored.status().message();
      EXPECT_EQ(scored->predictions, *flat->ScoreFiles({"q"}, ScoreForm::kPredictions)) << run;
      EXPECT_EQ(scored->logits, *flat->ScoreFiles({"q"}, ScoreForm::kLogits)) << run;
      EXPECT_EQ(scored->step, flat->step());
    }
  }
};

TEST_F(FlatScorerTest, CsvInEveryCutAndFormatOfWeights) {
  std::string train, text;
  std::vector<std::string> users, ages, tags;
  for (int i = 0; i < 64; ++i) {
    train += std::to_string(i % 2) + ",u" + std::to_string(i % 5) + "," + std::to_string(i) +
             ",a|b" + std::to_string(i % 3) + "\n";
  }
  WriteText(*files_, "t", train);
  for (int i = 0; i < 41; ++i) {
    users.push_back("u" + std::to_string(i % 9));
    ages.push_back(i % 4 == 0 ? "" : std::to_string(0.5 * i));
    tags.push_back(i % 6 == 0 ? "" : "a|b" + std::to_string(i % 4));
    text += "0," + users.back() + "," + ages.back() + "," + tags.back() + "\n";
  }
  TextColumns columns;
  columns.Add("user", users);
  columns.Add("age", ages);
  columns.Add("tags", tags);
  int run = 0;
  for (const char* const cut :
       {"", R"(, "slice_mode": "table_column_slice", "column_slices": 2)",
        R"(, "slice_mode": "field_slice")", R"(, "slice_mode": "table_row_slice")",
        R"(, "weights": "fp16")", R"(, "weights": "bf16")"}) {
    const std::string out = "run" + std::to_string(run++);
    Train(out, R"("train": ["t"], )" + std::string(kColumns), std::string(kDeepFm) + cut, 4);
    ExpectScoresOfFile(out, text, columns);
  }
  // A row alone.
  TextColumns one;
  one.Add("user", {users[1]});
  one.Add("age", {ages[1]});
  one.Add("tags", {tags[1]});
  ExpectScoresOfFile("run0", "0,u1,0.500000,a|b1\n", one);
}

TEST_F(FlatScorerTest, LinesOfFormatsWithoutNamedColumns) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> formats = {
      {R"("format": "libsvm")", {"1:1 2:0.5", "1:1 3:1", "4:2.5 5:1 6:1", "9:1", "1:1"}},
      {R"("format": "libffm", "num_fields": 3)",
       {"0:1:1 1:2:0.5 2:3:1", "0:2:1 1:3:1", "0:4:1 1:4:2 2:4:1", "2:9:1"}},
      {R"("format": "libfm", "num_fields": 2)", {"1:1 10:1", "2:1 11:1", "3:1 12:0.5", "1:1 9:1"}}};
  for (const auto& [format, rows] : formats) {
    const std::string run = "run_" + std::to_string(HashString(format));
    std::string train, text;
    std::vector<std::string> labelled;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i != 3) train += std::to_string(i % 2) + " " + rows[i] + "\n";
      text += rows[i] + "\n";
      labelled.push_back("1 " + rows[i]);
    }
    WriteText(*files_, "t", train);
    Train(run, R"("train": ["t"], )" + format, R"("type": "fm", "embedding_dim": 4)");
    TextColumns lines, with_labels, bad;
    lines.Add("row", rows);
    with_labels.Add("row", labelled);
    ExpectScoresOfFile(run, text, lines);
    ExpectScoresOfFile(run, text, with_labels);
    const auto flat = Open(Find(run), RowForm::kFlat, *executor_);
    const auto scored = flat->Score(lines.Table(), {.unknown_keys = true});
    uint64_t unknown = 0;
    for (const uint64_t keys : scored->unknown_keys) unknown += keys;
    EXPECT_EQ(unknown, 1u) << "9 has no row";
    bad.Add("row", {rows[0], "1:x " + rows[1]});
    const Status refused = flat->Score(bad.Table(), {}).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("the data row 1"));
  }
}

TEST_F(FlatScorerTest, ADeltaGivesTheBitsOfItsCheckpoint) {
  std::string train;
  for (int i = 0; i < 64; ++i) {
    train += std::to_string(i % 2) + ",u" + std::to_string(i) + "," + std::to_string(i) + ",a|b" +
             std::to_string(i % 7) + "\n";
  }
  WriteText(*files_, "t", train);
  Train("run", R"("train": ["t"], )" + std::string(kColumns) + kDeltas,
        std::string(kDeepFm) + R"(, "policy": {"evict_after_steps": 6})", 2);
  const std::vector<CheckpointPart> chain = Chain("run");
  ASSERT_GE(chain.size(), 4u);
  std::vector<std::string> users, ages, tags;
  for (int i = 0; i < 70; ++i) {
    users.push_back("u" + std::to_string(i));
    ages.push_back(std::to_string(i));
    tags.push_back("b" + std::to_string(i % 9));
  }
  TextColumns columns;
  columns.Add("user", users);
  columns.Add("age", ages);
  columns.Add("tags", tags);
  const auto followed = Open(Find(chain.front().folder), RowForm::kFlat, *executor_);
  std::vector<std::vector<float>> all;
  std::vector<uint64_t> unknown;
  for (size_t at = 0; at < chain.size(); ++at) {
    if (at > 0) {
      const Status applied = followed->Apply(chain[at]);
      ASSERT_TRUE(applied.ok()) << applied.message();
    }
    const ScoreWants wants{.unknown_keys = true};
    const auto fresh = Open(Find(chain[at].folder), RowForm::kFlat, *executor_);
    const auto expected = *fresh->Score(columns.Table(), wants);
    const auto scored = *followed->Score(columns.Table(), wants);
    EXPECT_EQ(scored.step, chain[at].manifest.clock);
    EXPECT_EQ(followed->step(), scored.step);
    EXPECT_EQ(scored.predictions, expected.predictions) << at;
    EXPECT_EQ(scored.unknown_keys, expected.unknown_keys) << at;
    all.push_back(scored.predictions);
    unknown.push_back(scored.unknown_keys[0]);
  }
  EXPECT_NE(all[0], all[1]);
  EXPECT_FALSE(std::ranges::is_sorted(unknown, std::greater<>())) << "some rows were evicted";
}

TEST_F(FlatScorerTest, ADeltaThatDoesNotFitChangesNothing) {
  std::string train;
  for (int i = 0; i < 64; ++i) train += std::to_string(i % 2) + ",a,1,p|q\n";
  WriteText(*files_, "t", train);
  const std::string data = R"("train": ["t"], )" + std::string(kColumns) + kDeltas;
  Train("run", data, kDeepFm);
  Train("other", data, R"("type": "deepfm", "embedding_dim": 5, "hidden": [8])");
  const std::vector<CheckpointPart> chain = Chain("run"), other = Chain("other");
  ASSERT_GE(chain.size(), 3u);
  ASSERT_GE(other.size(), 2u);
  TextColumns columns;
  columns.Add("user", {"a", "b", "c"});
  columns.Add("age", {"1", "2", "3"});
  columns.Add("tags", {"p", "q", "r"});
  const auto scorer = Open(Find(chain[0].folder), RowForm::kFlat, *executor_);
  const auto before = scorer->Score(columns.Table(), {})->predictions;
  const auto expect_refused = [&](const CheckpointPart& delta, Code code, const char* what) {
    const Status applied = scorer->Apply(delta);
    EXPECT_EQ(applied.code(), code) << applied.message();
    EXPECT_THAT(applied.message(), HasSubstr(what));
    EXPECT_EQ(scorer->Score(columns.Table(), {})->predictions, before);
    EXPECT_EQ(scorer->step(), chain[0].manifest.clock);
  };
  expect_refused(chain[2], Code::kInvalidArgument, "builds on step");  // A link is missing.
  expect_refused(other[1], Code::kInvalidArgument, "is of another job ('small')");
  expect_refused(chain[0], Code::kInvalidArgument, "has all rows");
  CheckpointPart rebuilt = chain[1];
  ++rebuilt.manifest.base_checksum;
  expect_refused(rebuilt, Code::kInvalidArgument, "another of this step");
  const std::string path = JoinPath(chain[1].folder, chain[1].manifest.files[0].pack.empty()
                                                         ? chain[1].manifest.files[0].name
                                                         : chain[1].manifest.files[0].pack);
  const std::string bytes = *ReadWholeFile(*files_, path, 1 << 20);
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  WriteText(*files_, path, damaged);
  expect_refused(chain[1], Code::kCorruption, path.c_str());
  WriteText(*files_, path, bytes);
  ASSERT_TRUE(scorer->Apply(chain[1]).ok());
  EXPECT_NE(scorer->Score(columns.Table(), {})->predictions, before);
}

// Lets several calls score at once, each on its own thread. The thread sanitizer does not see into
// oneTBB, whose tasks write to stacks of other threads.
class OwnThreads : public Executor {
 public:
  explicit OwnThreads(int threads) : threads_(threads) {}
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    for (size_t i = 0; i < count; ++i) body(i);
  }
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return threads_; }

 private:
  const int threads_;
};

// Shards that were read before the damaged one are not seen either, nor with the next delta.
TEST_F(PlantedSteps, WhatADamagedDeltaStagedIsForgotten) {
  const CheckpointPart first = Save(10);
  const std::optional<Manifest> base = last_;
  const CheckpointPart damaged = Save(20);
  const std::string path = JoinPath(damaged.folder, DeltaName({kShards - 1}));
  std::string bytes = *ReadWholeFile(*files_, path, 1 << 26);
  bytes[bytes.size() / 2] ^= 1;
  WriteText(*files_, path, bytes);
  last_ = base;
  std::vector<std::vector<TableSlice>> unchanged = NoRows();
  for (std::vector<TableSlice>& shard : unchanged) {
    for (TableSlice& slice : shard) slice.MarkSaved(10);
  }
  const CheckpointPart next = Write(30, unchanged);
  const auto scorer = Open(Find(first.folder), RowForm::kFlat, *executor_);
  EXPECT_EQ(scorer->Apply(damaged).code(), Code::kCorruption);
  const Status applied = scorer->Apply(next);
  ASSERT_TRUE(applied.ok()) << applied.message();
  TextColumns columns;
  std::vector<std::string> users, items;
  for (int i = 0; i < 100; ++i) {
    users.push_back("u" + std::to_string(i));
    items.push_back("i" + std::to_string(i));
  }
  columns.Add("user", users);
  columns.Add("item", items);
  const auto scored = scorer->Score(columns.Table(), {.logits = true});
  EXPECT_EQ(scored->step, 30);
  EXPECT_EQ(scored->logits, std::vector<float>(100, 30.0f)) << "three weights of 10";
}

TEST_F(PlantedSteps, NoAnswerMixesTwoSteps) {
  constexpr int kSteps = 40, kThreads = 3;
  std::vector<CheckpointPart> parts;
  for (int d = 0; d <= kSteps; ++d) parts.push_back(Save(10 * (d + 1)));
  OwnThreads executor(kThreads + 1);
  const auto scorer = Open(Find(parts[0].folder), RowForm::kFlat, executor);
  TextColumns many, few;
  std::vector<std::string> users, items;
  for (int i = 0; i < 5000; ++i) {  // Two batches, between which a delta may come.
    users.push_back("u" + std::to_string(i % kUsers));
    items.push_back("i" + std::to_string(i * 7 % kUsers));
  }
  many.Add("user", users);
  many.Add("item", items);
  few.Add("user", {users[0], users[1]});
  few.Add("item", {items[0], items[1]});
  std::atomic<bool> ended = false;
  std::atomic<int> begun = 0;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.push_back(StartThread("caller", [&, t] {
      Clock last = 0;
      for (bool first = true; first || !ended; first = false) {
        const auto scored = scorer->Score((t == 0 ? many : few).Table(), {.logits = true});
        if (first) ++begun;
        if (!scored.ok()) wrong[t] = scored.status().message();
        if (!scored.ok()) return;
        if (scored->step < last) wrong[t] = "went back";
        last = scored->step;
        for (const float logit : scored->logits) {
          if (logit != 3 * static_cast<float>(scored->step)) {
            wrong[t] = std::to_string(logit) + " at step " + std::to_string(scored->step);
          }
        }
      }
    }));
  }
  while (begun < kThreads) {
  }
  for (int d = 1; d <= kSteps; ++d) {
    const Status applied = scorer->Apply(parts[static_cast<size_t>(d)]);
    ASSERT_TRUE(applied.ok()) << applied.message();
    const auto scored = scorer->Score(few.Table(), {});
    ASSERT_EQ(scored->step, 10 * (d + 1));
  }
  ended = true;
  for (const auto& thread : threads) thread->Join();
  EXPECT_EQ(wrong, std::vector<std::string>(kThreads));
}

}  // namespace
}  // namespace hdps
