// Tests where the files of a job's data are searched, and patterns for several files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "common/job/given_job.h"
#include "common/job/spec/data_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JobFilesTest, FoldersAndPatternsStandForTheirFiles) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  for (const char* folder : {"jobs", "jobs/day=1", "jobs/day=2", "jobs/day=2/more", "jobs/empty"}) {
    ASSERT_TRUE(files->MakeDirectories(folder).ok());
  }
  for (const char* path : {"jobs/day=1/b.csv", "jobs/day=1/a.csv", "jobs/day=1/_SUCCESS",
                           "jobs/day=1/.hidden.csv", "jobs/day=2/c.csv", "jobs/day=2/more/d.csv",
                           "jobs/day=2/e.txt", "jobs/x[1].csv", "here.csv"}) {
    ASSERT_TRUE(WriteFileAtomically(*files, path, std::string("1")).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/j.json", std::string(kShort)).ok());
  const auto files_of = [&](const std::string& list) {
    const Result<Job> job = LoadJob(*files, "jobs/j.json", {"data.train=" + list});
    EXPECT_TRUE(job.ok()) << job.status().message();
    return job.ok() ? job->data.train : std::vector<std::string>();
  };
  EXPECT_THAT(files_of("[\"day=1\"]"), ElementsAre("jobs/day=1/a.csv", "jobs/day=1/b.csv"));
  EXPECT_THAT(files_of("[\"day=2/\"]"), ElementsAre("jobs/day=2/c.csv", "jobs/day=2/e.txt"));
  EXPECT_THAT(files_of("[\"day=[12]/*.csv\"]"),
              ElementsAre("jobs/day=1/a.csv", "jobs/day=1/b.csv", "jobs/day=2/c.csv"));
  EXPECT_THAT(files_of("[\"day=?\"]"), ElementsAre("jobs/day=1/a.csv", "jobs/day=1/b.csv",
                                                   "jobs/day=2/c.csv", "jobs/day=2/e.txt"));
  // Checks the order between entries, a name that looks like a pattern, and another root.
  EXPECT_THAT(files_of("[\"x[1].csv\", \"here.csv\", \"day=2/c*\"]"),
              ElementsAre("jobs/x[1].csv", "here.csv", "jobs/day=2/c.csv"));
  const auto error_of = [&](const std::string& list) {
    return LoadJob(*files, "jobs/j.json", {"data.train=" + list}).status();
  };
  EXPECT_EQ(error_of("[\"day=1\", \"*.tsv\"]").message(),
            "jobs/j.json: --set: data.train.1: no file matches; looked for jobs/*.tsv and *.tsv");
  EXPECT_THAT(error_of("[\"empty\"]").message(),
              HasSubstr("data.train.0: there is no file in the folder jobs/empty whose name begins "
                        "with neither"));
  EXPECT_EQ(error_of("[\"empty\"]").code(), Code::kInvalidArgument);
  // Elsewhere the data need not exist, and then patterns stay as they are.
  const Result<Job> elsewhere =
      LoadJob(*files, "jobs/j.json", {"data.train=[\"far/*.csv\"]"}, DataFiles::kNotNeeded);
  EXPECT_THAT(elsewhere->data.train, ElementsAre("far/*.csv"));
}

TEST(JobFilesTest, FilesThatCountTwiceAreSaid) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  for (const char* path : {"a.csv", "b.csv"}) {
    ASSERT_TRUE(WriteFileAtomically(*files, path, std::string("1")).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(*files, "j.json", std::string(kShort)).ok());
  const auto warnings_of = [&](const std::string& train) {
    return LoadJob(*files, "j.json", {"data.train=" + train, "data.eval=[\"b.csv\"]"})->warnings;
  };
  EXPECT_THAT(warnings_of("[\"a.csv\"]"), ElementsAre());
  EXPECT_THAT(warnings_of("[\"*.csv\", \"a.csv\"]"),
              ElementsAre("data.train has files more than once, and trains on them as often: a.csv",
                          "data.eval has files that are trained on too: b.csv"));
}

TEST(JobFilesTest, DataIsSoughtBesideTheJobThenInTheWorkingFolder) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("jobs").ok());
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/j.json", std::string(kShort)).ok());
  const Result<Job> none = LoadJob(*files, "jobs/j.json", {});
  EXPECT_EQ(none.status().message(),
            "jobs/j.json:4: data.train.0: there is no such file; looked for jobs/a.csv and a.csv");
  ASSERT_TRUE(WriteFileAtomically(*files, "a.csv", std::string("1")).ok());
  EXPECT_THAT(LoadJob(*files, "jobs/j.json", {})->data.train, ElementsAre("a.csv"));
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/a.csv", std::string("1")).ok());
  EXPECT_THAT(LoadJob(*files, "jobs/j.json", {})->data.train, ElementsAre("jobs/a.csv"));
  const Status absent = LoadJob(*files, "jobs/k.json", {}).status();
  EXPECT_EQ(absent.code(), Code::kInvalidArgument);
  EXPECT_THAT(absent.message(), HasSubstr("--job"));
}

// A time quadratic in the number of keys would be hours here.
TEST(JobFilesTest, AMillionKeysAreReadOnce) {
  std::string text = "{";
  for (int i = 0; i < 1'000'000; ++i) text += "\"k" + std::to_string(i) + "\": 1,\n";
  text += "\"k7\": 1}";
  const auto job = ParseJob(text, "job.json", {});
  ASSERT_FALSE(job.ok());
  EXPECT_NE(job.status().message().find("job.json:1000001:"), std::string::npos)
      << job.status().message();
  EXPECT_NE(job.status().message().find("\"k7\" is given twice"), std::string::npos);
}

TEST(GivenJobTest, EachSettingSaysWhereItComesFrom) {
  const WrittenJob text = {"j.json", kShort};
  const std::vector<std::string> overrides = {"train.epochs=7", "data.eval=[\"late.csv\"]"};
  Result<Job> job = ParseJob(text.text, text.origin, overrides);
  ASSERT_TRUE(job.ok()) << job.status().message();
  const Result<std::vector<SettingOrigin>> origins =
      OriginsOf(*job, text, overrides, "environment");
  ASSERT_TRUE(origins.ok()) << origins.status().message();
  std::map<std::string, std::string> from, value;
  for (const SettingOrigin& one : *origins) {
    EXPECT_TRUE(from.emplace(one.path, one.from).second) << one.path;
    value[one.path] = one.value;
  }
  EXPECT_EQ(from["train.epochs"], "environment");
  EXPECT_EQ(value["train.epochs"], "7");
  EXPECT_EQ(from["data.eval"], "environment");
  EXPECT_EQ(value["data.eval"], "[\"late.csv\"]");
  EXPECT_EQ(from["data.train"], "file");
  EXPECT_EQ(from["cluster.heartbeat_ms"], "default");
  // A recipe made the layers out of the words of the file.
  size_t made = 0;
  for (const auto& [path, origin] : from) {
    if (!path.starts_with("model.")) continue;
    EXPECT_EQ(origin, "file") << path;
    ++made;
  }
  EXPECT_GT(made, 3u);
}

}  // namespace
}  // namespace hdps
