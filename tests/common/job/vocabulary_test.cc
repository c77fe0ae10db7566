// Tests vocabularies: which keys they have, their bytes, and what a job refuses of a file.
#include "common/job/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Vocabulary Drawn(size_t keys, std::set<Key>* all) {
  Random draws(keys + 1);
  while (all->size() < keys) all->insert(draws.Next());
  // Twice, in falling order: the order and repetitions do not matter.
  std::vector<Key> given(all->rbegin(), all->rend());
  given.insert(given.end(), all->begin(), all->end());
  return Vocabulary({9, 3, 9}, given, 100);
}

TEST(VocabularyTest, HasTheKeysThatWereGivenAndNoOthersAndSoHasItsFile) {
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{64}, size_t{5000}}) {
    std::set<Key> keys;
    const Vocabulary made = Drawn(count, &keys);
    const Result<Vocabulary> read = ParseVocabulary(made.Print());
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->Print(), made.Print());
    EXPECT_EQ(read->Checksum(), made.Checksum());
    EXPECT_EQ(read->min_count(), 100u);
    for (const Vocabulary* const one : {&made, &*read}) {
      EXPECT_EQ(one->size(), count);
      EXPECT_TRUE(one->Covers(3) && one->Covers(9));
      EXPECT_FALSE(one->Covers(4));
      for (const Key key : keys) {
        EXPECT_TRUE(one->Has(key));
        for (const Key near : {key - 1, key + 1, key ^ (Key{1} << 63)}) {
          EXPECT_EQ(one->Has(near), keys.contains(near));
        }
      }
      EXPECT_EQ(one->Has(0), keys.contains(0));
      EXPECT_EQ(one->Has(~Key{0}), keys.contains(~Key{0}));
    }
  }
}

TEST(VocabularyTest, DamagedBytesAreRefusedWhereverTheDamageIs) {
  std::set<Key> keys;
  const std::string bytes = Drawn(5, &keys).Print();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_EQ(ParseVocabulary(damaged).status().code(), Code::kCorruption) << at;
    EXPECT_EQ(ParseVocabulary(bytes.substr(0, at)).status().code(), Code::kCorruption) << at;
  }
  EXPECT_EQ(ParseVocabulary(bytes + bytes).status().code(), Code::kCorruption);
}

// A job of the columns c, d and e, with a vocabulary beside its file.
class VocabularyOfJobTest : public ::testing::Test {
 protected:
  VocabularyOfJobTest() : files_(NewMemoryFileSystem()) {
    EXPECT_TRUE(files_->MakeDirectories("jobs").ok());
    EXPECT_TRUE(WriteFileAtomically(*files_, "jobs/a.csv", std::string("0,1,x,y,z\n")).ok());
    EXPECT_TRUE(WriteFileAtomically(*files_, "jobs/job.json", std::string(kShort)).ok());
  }

  void Keep(const Vocabulary& vocabulary) {
    EXPECT_TRUE(WriteFileAtomically(*files_, "jobs/v.keys", vocabulary.Print()).ok());
  }
  Result<Job> Load(const std::string& checksum, DataFiles needed = DataFiles::kMustExist) {
    return LoadJob(*files_, "jobs/job.json",
                   {"data.vocabulary.file=v.keys", "data.vocabulary.checksum=" + checksum}, needed);
  }

  const std::unique_ptr<FileSystem> files_;
  const Vocabulary vocabulary_{{HashString("c"), HashString("d"), HashString("e")}, {1, 2}, 5};
};

TEST_F(VocabularyOfJobTest, IsFoundBesideTheJobAndReadByWhoReadsTheData) {
  Keep(vocabulary_);
  const Result<Job> job = Load(vocabulary_.Checksum());
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->data.vocabulary.file, "jobs/v.keys");
  ASSERT_NE(job->data.vocabulary.values, nullptr);
  EXPECT_EQ(job->data.vocabulary.values->Print(), vocabulary_.Print());
  const Result<Job> server = Load(vocabulary_.Checksum(), DataFiles::kNotNeeded);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(server->data.vocabulary.values, nullptr);
  // The place of the file is no part of what is trained, and its contents are.
  Job moved = *job;
  moved.data.vocabulary.file = "elsewhere";
  EXPECT_EQ(JobDigest(moved), JobDigest(*job));
  moved.data.vocabulary.checksum = "0123456789abcdef";
  EXPECT_NE(JobDigest(moved), JobDigest(*job));
}

TEST_F(VocabularyOfJobTest, IsRefusedWithPlaceValueAndMend) {
  const auto refusal = [&](const std::string& checksum) {
    const Result<Job> job = Load(checksum);
    EXPECT_EQ(job.status().code(), Code::kInvalidArgument);
    return job.status().message();
  };
  const std::string good = vocabulary_.Checksum(), place = "data.vocabulary.file";
  EXPECT_THAT(refusal(good), AllOf(HasSubstr(place), HasSubstr("v.keys: there is no such file")));
  EXPECT_TRUE(Load(good, DataFiles::kNotNeeded).ok()) << "servers need no data";
  Keep(vocabulary_);
  EXPECT_THAT(refusal("0123456789abcdef"),
              AllOf(HasSubstr(place), HasSubstr(good), HasSubstr("0123456789abcdef")));
  const Vocabulary less({HashString("c"), HashString("e")}, {1, 2}, 5);
  Keep(less);
  EXPECT_THAT(refusal(less.Checksum()), AllOf(HasSubstr(place), HasSubstr("the feature 'd'"),
                                              HasSubstr("hdps prepare --min_count=N")));
  EXPECT_TRUE(WriteFileAtomically(*files_, "jobs/v.keys", std::string("1,2,3\n")).ok());
  EXPECT_THAT(refusal(good), AllOf(HasSubstr(place), HasSubstr("no whole vocabulary")));
}

}  // namespace
}  // namespace hdps
