// Runs all findings and seeds of fuzzing in every build: each input once, in its target.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/platform/file_system.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

constexpr uint64_t kFileBytesMax = 1 << 20;
const std::string kFolder = HDPS_SOURCE_DIR "/tests/fuzz/";

// Returns the input of a line from scripts/dev/fuzz_corpus.py: printable ASCII characters except
// the backslash stand for themselves, and every other byte is \xNN.
std::optional<std::string> InputOf(std::string_view line) {
  std::string input;
  while (!line.empty()) {
    char byte = line[0];
    size_t taken = 1;
    if (byte == '\\') {
      taken = 4;
      unsigned char value = 0;
      if (line.size() < taken || line[1] != 'x') return std::nullopt;
      const char* const end = line.data() + taken;
      if (std::from_chars(line.data() + 2, end, value, 16).ptr != end) return std::nullopt;
      byte = static_cast<char>(value);
    } else if (byte < ' ' || byte > '~') {
      return std::nullopt;
    }
    input += byte;
    line.remove_prefix(taken);
  }
  return input;
}

std::string Contents(FileSystem& files, const std::string& path) {
  const auto bytes = ReadWholeFile(files, path, kFileBytesMax);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : "";
}

std::vector<std::string> CorpusOf(const Target& target) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  std::vector<std::string> inputs;
  std::istringstream lines(Contents(*files, kFolder + "corpus/" + target.name + ".txt"));
  for (std::string line; std::getline(lines, line);) {
    const std::optional<std::string> input = InputOf(line);
    EXPECT_TRUE(input.has_value()) << line;
    if (input) inputs.push_back(*input);
  }
  // Inputs that once ended the process.
  const std::string found = kFolder + "found/" + target.name;
  if (!files->Exists(found)) return inputs;
  const auto names = files->List(found);
  EXPECT_TRUE(names.ok()) << names.status().message();
  if (!names.ok()) return inputs;
  for (const std::string& name : *names) {
    inputs.push_back(Contents(*files, JoinPath(found, name)));
  }
  return inputs;
}

TEST(CorpusFiles, LinesAreTheirInputs) {
  EXPECT_EQ(InputOf(""), "");
  EXPECT_EQ(InputOf(R"({"a": ~\x5cx\x00\xff})"), std::string("{\"a\": ~\\x\0\xff}", 12));
  for (const char* const line : {"\x01", "\x7f", "\\n", "\\x0", "\\x0g", "\\\\", "\xc3\xa4"}) {
    EXPECT_EQ(InputOf(line), std::nullopt) << line;
  }
}

TEST(CorpusFiles, EachIsOfATarget) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  std::set<std::string> corpora, names;
  for (const Target& target : Targets()) {
    corpora.insert(target.name + ".txt");
    names.insert(target.name);
  }
#ifndef HDPS_WITH_TFRECORD
  corpora.insert("tfrecord.txt");  // Its target is not in this build.
#endif
  const auto listed = files->List(kFolder + "corpus"), found = files->List(kFolder + "found");
  ASSERT_TRUE(listed.ok() && found.ok());
  EXPECT_EQ(std::set(listed->begin(), listed->end()), corpora);
  for (const std::string& name : *found) EXPECT_TRUE(names.contains(name)) << name;
}

class Corpus : public testing::TestWithParam<Target> {};

// A failure ends the program; scripts/dev/fuzz.sh shows its input.
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
