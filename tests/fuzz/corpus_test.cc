// What fuzzing has found, and what it begins with, in every build: each input once, in each target.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/file_system.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

constexpr uint64_t kInputBytesMax = 1 << 20;

std::vector<std::string> CorpusOf(const Target& target) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string folder = std::string(HDPS_SOURCE_DIR "/tests/fuzz/corpus/") + target.name;
  const auto names = files->List(folder);
  EXPECT_TRUE(names.ok()) << names.status().message();
  std::vector<std::string> inputs;
  if (!names.ok()) return inputs;
  for (const std::string& name : *names) {
    const auto input = ReadWholeFile(*files, JoinPath(folder, name), kInputBytesMax);
    EXPECT_TRUE(input.ok()) << input.status().message();
    if (input.ok()) inputs.push_back(*input);
  }
  return inputs;
}

class Corpus : public testing::TestWithParam<Target> {};

// A failure ends the program: scripts/dev/fuzz.sh shows which input it is.
TEST_P(Corpus, EachInputIsReadOrRefused) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  const Target& target = GetParam();
  size_t seeds_accepted = 0, accepted = 0;
  const std::vector<std::string> seeds = target.seeds(), corpus = CorpusOf(target);
  for (const std::string& seed : seeds) seeds_accepted += target.run(seed) == Verdict::kAccepted;
  for (const std::string& input : corpus) accepted += target.run(input) == Verdict::kAccepted;
  std::printf(
      "figure: fuzz corpus: %s: %zu inputs, %zu of them accepted; %zu seeds, %zu accepted\n",
      target.name.c_str(), corpus.size(), accepted, seeds.size(), seeds_accepted);
  EXPECT_GT(seeds_accepted, 0u) << "The writers make what the readers refuse.";
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, corpus.size()) << "Nothing is refused.";
}

INSTANTIATE_TEST_SUITE_P(Target, Corpus, testing::ValuesIn(Targets()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hdps::fuzz
