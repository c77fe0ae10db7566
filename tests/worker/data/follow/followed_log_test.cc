// Tests readers of a log while it is written: a script changes the files whenever the reader waits,
// so no time passes and every run is the same.
#include "worker/data/follow/followed_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "common/job/data_paths.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/follow/row_wait.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

// Does the next thing of a script in each wait; the log is not followed any more behind the last.
class Script : public RowWait {
 public:
  bool Wait(const std::string& behind) override {
    places_.push_back(behind);
    if (stopped_ || steps_.empty()) return false;
    const std::function<void()> step = std::move(steps_.front());
    steps_.pop_front();
    step();
    return true;
  }
  void End() override { ++ends_; }
  void Stop() override { stopped_ = true; }

  void Then(std::function<void()> step) { steps_.push_back(std::move(step)); }
  const std::vector<std::string>& places() const { return places_; }
  int ends() const { return ends_; }

 private:
  std::deque<std::function<void()>> steps_;
  std::vector<std::string> places_;
  int ends_ = 0;
  bool stopped_ = false;
};

TEST(FollowedFilesTest, APatternFollowsNoNameThatOtherProgramsHide) {
  const auto files = NewMemoryFileSystem();
  for (const char* folder : {"clicks/_meta", "clicks/day", "_own"}) {
    ASSERT_TRUE(files->MakeDirectories(folder).ok());
  }
  for (const char* path : {"clicks/a", "clicks/_committed", "clicks/_meta/0", "clicks/day/b",
                           "clicks/day/_c", "_own/a"}) {
    WriteText(*files, path, "1\n");
  }
  DataSpec data;
  data.follow = true;
  const auto followed = [&](const std::string& entry) {
    data.train = {entry};
    const auto found = FollowedFilesOf(*files, data);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::vector<std::string>();
  };
  using testing::ElementsAre;
  EXPECT_THAT(followed("clicks/*"), ElementsAre("clicks/a", "clicks/day/b"));
  EXPECT_THAT(followed("clicks/*/*"), ElementsAre("clicks/day/b"));
  EXPECT_THAT(followed("_own/*"), ElementsAre("_own/a"));
  EXPECT_THAT(followed("clicks/_*"), ElementsAre("clicks/_committed", "clicks/_meta/0"));
}

class FollowedLogTest : public testing::Test {
 protected:
  FollowedLogTest() : files_(NewMemoryFileSystem()), script_(std::make_shared<Script>()) {
    data_ = NumberedRows();
    data_.follow = true;
    data_.follow_until = "_SUCCESS";
    data_.train = {"log"};
    data_.shuffle_rows = 0;
    EXPECT_TRUE(files_->MakeDirectories("log").ok());
  }

  void Append(const std::string& path, const std::string& text) {
    const auto file = files_->OpenAppend(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE((*file)->Append(std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  void ThenAppend(const std::string& path, const std::string& text) {
    script_->Then([=, this] { Append(path, text); });
  }
  void ThenEnd() {
    script_->Then([this] { Append("log/_SUCCESS", ""); });
  }

  struct Outcome {
    std::vector<int> ids;
    Status status;
    uint64_t bad_rows = 0;
  };
  // Reads part `part` of `parts` from step `skip` on, to the end or an error.
  Outcome Read(uint32_t part = 0, uint32_t parts = 1, uint64_t skip = 0) {
    const ReaderOptions options{
        .batch_size = 10, .part = part, .num_parts = parts, .follow = script_};
    Outcome outcome;
    auto reader = NewBatchReader(*files_, data_, data_.train, options);
    outcome.status = reader.status();
    if (outcome.status.ok()) outcome.status = (*reader)->StartEpoch(0, skip);
    while (outcome.status.ok()) {
      Result<std::optional<Batch>> batch = (*reader)->Next();
      outcome.status = batch.status();
      if (!outcome.status.ok() || !batch->has_value()) break;
      const std::vector<int> ids = IdsOf(**batch);
      outcome.ids.insert(outcome.ids.end(), ids.begin(), ids.end());
    }
    outcome.bad_rows = reader.ok() ? (*reader)->bad_rows() : 0;
    return outcome;
  }
  std::string Error() {
    const Outcome outcome = Read();
    EXPECT_EQ(outcome.status.code(), Code::kCorruption) << outcome.status.message();
    return outcome.status.message();
  }

  static std::vector<int> Ids(int begin, int end, int stride = 1) {
    std::vector<int> ids;
    for (int id = begin; id < end; id += stride) ids.push_back(id);
    return ids;
  }

  const std::unique_ptr<FileSystem> files_;
  const std::shared_ptr<Script> script_;
  DataSpec data_;
};

TEST_F(FollowedLogTest, RowsComeOnceInOrderHoweverTheyAreWritten) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(files_->RemoveAll("log").ok());
    ASSERT_TRUE(files_->MakeDirectories("log").ok());
    // Pieces of any size, of lines and of files, of which some lack the last line's end.
    int begin = 0;
    for (int file = 0; file < 3; ++file) {
      const int end = begin + static_cast<int>(random.Below(20));
      std::string text = NumberedText(begin, end);
      begin = end;
      if (!text.empty() && random.Below(2) == 0) text.pop_back();
      const std::string path = "log/" + std::to_string(file);
      if (random.Below(4) == 0) ThenAppend(path, "");
      for (size_t at = 0; at < text.size();) {
        const size_t size = std::min<size_t>(1 + random.Below(60), text.size() - at);
        ThenAppend(path, text.substr(at, size));
        at += size;
      }
    }
    ThenEnd();
    const Outcome outcome = Read();
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
    ASSERT_EQ(outcome.ids, Ids(0, begin));
    ASSERT_EQ(outcome.bad_rows, 0u);
  }
}

TEST_F(FollowedLogTest, AStepWaitsUntilItIsFullAndTheEndMakesAShortOne) {
  Append("log/a", NumberedText(0, 14));
  const Outcome outcome = Read();
  EXPECT_EQ(outcome.status.code(), Code::kCancelled);
  EXPECT_EQ(outcome.ids, Ids(0, 10));
  EXPECT_EQ(script_->places(), std::vector<std::string>{"log/a:14"});
  ThenEnd();
  EXPECT_EQ(Read().ids, Ids(0, 14));
}

TEST_F(FollowedLogTest, PartsAreThoseOfTheFinishedLog) {
  for (uint32_t part = 0; part < 3; ++part) {
    ASSERT_TRUE(files_->RemoveAll("log").ok());
    ASSERT_TRUE(files_->MakeDirectories("log").ok());
    // Each part sees the log grow in another way.
    ThenAppend("log/a", NumberedText(0, 7 + static_cast<int>(part)));
    ThenAppend("log/a", NumberedText(7 + static_cast<int>(part), 31));
    ThenAppend("log/b", NumberedText(31, 60));
    ThenEnd();
    EXPECT_EQ(Read(part, 3).ids, Ids(static_cast<int>(part), 60, 3));
  }
}

TEST_F(FollowedLogTest, AReaderGoesOnBehindItsSteps) {
  Append("log/a", NumberedText(0, 15));
  ThenAppend("log/b", NumberedText(15, 42));
  ThenEnd();
  EXPECT_EQ(Read(0, 1, 2).ids, Ids(20, 42));
}

TEST_F(FollowedLogTest, TheWindowMixesAsIfTheLogWereWhole) {
  data_.shuffle_rows = 16;
  Append("log/a", NumberedText(0, 25));
  ThenAppend("log/a", NumberedText(25, 40));
  ThenAppend("log/b", NumberedText(40, 77));
  ThenEnd();
  const std::vector<int> followed = Read().ids;
  DataSpec whole = data_;
  whole.follow = false;
  whole.train = {"log/a", "log/b"};
  auto reader = NewBatchReader(*files_, whole, whole.train, {.batch_size = 10});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(followed, IdsOf(ReadEpoch(**reader)));
}

TEST_F(FollowedLogTest, ASingleFileIsFollowedTo) {
  data_.train = {"log/clicks.csv"};
  Append("log/clicks.csv", NumberedText(0, 3));
  Append("log/other.csv", NumberedText(90, 93));  // Not named by the job.
  ThenAppend("log/clicks.csv", NumberedText(3, 25));
  ThenEnd();
  EXPECT_EQ(Read().ids, Ids(0, 25));
}

TEST_F(FollowedLogTest, NamesThatAreNoFilesYetAreLeftOut) {
  Append("log/.hidden", "x\n");
  Append("log/_metadata", "x\n");
  for (const char* ending : kUnfinishedEndings) Append(std::string("log/a") + ending, "x\n");
  ThenAppend("log/b", NumberedText(0, 10));
  script_->Then([this] {
    Append("log/c.tmp", NumberedText(10, 20));
    ASSERT_TRUE(files_->Rename("log/c.tmp", "log/c").ok());
  });
  ThenEnd();
  EXPECT_EQ(Read().ids, Ids(0, 20));
}

TEST_F(FollowedLogTest, HeadersOfLaterFilesHaveTheirOwnOrder) {
  data_.header = true;
  ThenAppend("log/a", "label,id,co");
  ThenAppend("log/a", "lor\n0,0,c0\n0,1,");
  ThenAppend("log/a", "c1\n");
  ThenAppend("log/b", "color,id,label\nc2,2,0\n");
  ThenEnd();
  const Outcome outcome = Read();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.ids, Ids(0, 3));
}

TEST_F(FollowedLogTest, ABadRowIsNamedByItsOwnFile) {
  Append("log/a", NumberedText(0, 3));
  ThenAppend("log/b", "0,3,c3\n0,x,c4\n");
  ThenEnd();
  EXPECT_THAT(Read().status.message(), HasSubstr("log/b:2:3: 'x'"));
}

TEST_F(FollowedLogTest, TheWaitIsToldWithThePlaceOfTheLastLine) {
  ThenAppend("log/a", NumberedText(0, 2) + "0,2");
  ThenAppend("log/a", ",c2\n");
  ThenAppend("log/b", NumberedText(3, 4));
  ThenEnd();
  EXPECT_EQ(Read().ids, Ids(0, 4));
  EXPECT_EQ(script_->places(), (std::vector<std::string>{"log", "log/a:2", "log/a:3", "log/b:1"}));
  EXPECT_EQ(script_->ends(), 4);
}

TEST_F(FollowedLogTest, AStopEndsTheWait) {
  script_->Stop();
  EXPECT_EQ(Read().status.code(), Code::kCancelled);
}

// ---- What breaks the order of rows is an error.

TEST_F(FollowedLogTest, AFileThatShrinksIsNamed) {
  Append("log/a", NumberedText(0, 3));
  script_->Then([this] { WriteText(*files_, "log/b", NumberedText(3, 9)); });
  script_->Then([this] {
    ASSERT_TRUE(files_->RemoveAll("log/b").ok());
    Append("log/b", "0,3,c3\n");
  });
  EXPECT_THAT(Error(), HasSubstr("log/b has 7 bytes, and 42 bytes were read of it"));
}

TEST_F(FollowedLogTest, AFileThatIsGoneIsNamed) {
  Append("log/a", NumberedText(0, 3));
  ThenAppend("log/b", NumberedText(3, 4));
  script_->Then([this] { ASSERT_TRUE(files_->RemoveAll("log/a").ok()); });
  EXPECT_THAT(Error(), HasSubstr("log/a is gone"));
}

TEST_F(FollowedLogTest, AFileThatGrowsAfterTheNextOneIsNamed) {
  Append("log/a", NumberedText(0, 3));
  ThenAppend("log/b", NumberedText(3, 4));
  ThenAppend("log/a", NumberedText(4, 5));
  const std::string error = Error();
  EXPECT_THAT(error, HasSubstr("log/a has grown from 21 bytes to 28 bytes after it was read"));
  EXPECT_THAT(error, HasSubstr("ends in .tmp"));
}

TEST_F(FollowedLogTest, AFileWithASmallerNameIsNamedWithItsMend) {
  Append("log/day-2", NumberedText(0, 3));
  ThenAppend("log/day-1", NumberedText(3, 4));
  const Outcome outcome = Read();
  EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(outcome.status.message(),
              HasSubstr("log/day-1 has come after log/day-2, and stands before it by its name"));
  EXPECT_THAT(outcome.status.message(), HasSubstr("rename it to one behind log/day-2"));
}

TEST_F(FollowedLogTest, APackedFileIsReadAsAWholeAndCannotBeFollowed) {
  const std::string packed("\x1f\x8b\x08 cut", 7);
  Append("log/a", packed);
  EXPECT_THAT(Read().status.message(), HasSubstr("unpacking 'log/a' (gzip)"));
  data_.train = {"log/a"};
  const Outcome outcome = Read();
  EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(outcome.status.message(), HasSubstr("log/a is packed or has records"));
}

}  // namespace
}  // namespace hdps
