// Tests lines against a plain split of the same text, at every size of read.
#include "worker/data/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/platform/forwarding_files.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

// Returns at most `most` bytes per read, like pipes and slow disks.
class TricklingFiles : public ForwardingFiles {
 public:
  TricklingFiles(FileSystem& files, size_t most) : ForwardingFiles(files), most_(most) {}
  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    HDPS_ASSIGN_OR_RETURN(auto file, ForwardingFiles::OpenSequential(path));
    std::unique_ptr<SequentialFile> trickling = std::make_unique<Trickle>(std::move(file), most_);
    return trickling;
  }

 private:
  class Trickle : public SequentialFile {
   public:
    Trickle(std::unique_ptr<SequentialFile> file, size_t most)
        : file_(std::move(file)), most_(most) {}
    Result<size_t> Read(std::span<std::byte> buffer) override {
      return file_->Read(buffer.first(std::min(buffer.size(), most_)));
    }

   private:
    std::unique_ptr<SequentialFile> file_;
    size_t most_;
  };
  size_t most_;
};

std::vector<std::string> AllLines(LineReader& reader) {
  std::vector<std::string> lines;
  EXPECT_TRUE(reader.Start().ok());
  Line line;
  while (true) {
    const Result<bool> found = reader.Next(&line);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok() || !*found) return lines;
    lines.push_back(std::to_string(line.place.number) + " " + std::string(line.text));
  }
}

TEST(LineReaderTest, EqualsAPlainSplitWhateverTheSizeOfReads) {
  const auto memory = NewMemoryFileSystem();
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (uint64_t n = random.Below(400); n > 0; --n) text += "ab\n\r "[random.Below(5)];
    WriteText(*memory, "t", text);
    std::vector<std::string> expected;
    std::istringstream stream(text);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.find_first_not_of(" \r") == std::string::npos) continue;
      expected.push_back(std::to_string(number) + " " + line);
    }
    for (size_t most : {1u, 2u, 3u, 17u, 1000u}) {
      TricklingFiles files(*memory, most);
      LineReader reader(files, {"t"}, {});
      EXPECT_EQ(AllLines(reader), expected);
    }
  }
}

TEST(LineReaderTest, LinesLongerThanTheBufferAreWhole) {
  const auto files = NewMemoryFileSystem();
  const std::string big(size_t{3} << 20, 'x');
  WriteText(*files, "t", "a\n" + big + "\nb\n" + big);
  LineReader reader(*files, {"t"}, {});
  const std::vector<std::string> lines = AllLines(reader);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "2 " + big);
  EXPECT_EQ(lines[2], "3 b");
  EXPECT_EQ(lines[3], "4 " + big);
}

// Exact to the byte, with each kind of line end and without one, inside a buffer and beyond it.
TEST(LineReaderTest, ALineHasAtMostSoManyBytes) {
  const auto files = NewMemoryFileSystem();
  const std::string longest(kLineBytesMax, 'x');
  for (const char* const end : {"\n", "\r\n", ""}) {
    WriteText(*files, "t", "a\n" + longest + end);
    LineReader fits(*files, {"t"}, {});
    EXPECT_EQ(AllLines(fits).back(), "2 " + longest);
    WriteText(*files, "t", "a\n" + longest + "x" + end);
    LineReader reader(*files, {"t"}, {});
    ASSERT_TRUE(reader.Start().ok());
    Line line;
    ASSERT_TRUE(*reader.Next(&line));
    EXPECT_THAT(reader.Next(&line).status().message(), HasSubstr("t:2: a line of more than"));
  }
}

TEST(LineReaderTest, AFileWithoutLinesIsRefusedByName) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "core.bin", "fine\n" + std::string(kLineBytesMax + (4u << 20), 'x'));
  LineReader reader(*files, {"core.bin"}, {});
  ASSERT_TRUE(reader.Start().ok());
  Line line;
  ASSERT_TRUE(*reader.Next(&line));
  const Result<bool> found = reader.Next(&line);
  EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(found.status().message(), HasSubstr("core.bin:2:"));
}

}  // namespace
}  // namespace hdps
