// Tests files with headers: columns in any order, each file in its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<BatchReader> MakeReader(FileSystem& files, const DataSpec& data,
                                        const ReaderOptions& options,
                                        const std::vector<std::string>& paths) {
  auto reader = NewBatchReader(files, data, paths, options);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return *std::move(reader);
}

TEST(HeaderReaderTest, ColumnsInAnotherOrderGiveTheSameBatches) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.shuffle_rows = 16;
  std::string plain = "label,id,color\n", mixed = "color,more,label,id\n";
  for (int i = 0; i < 300; ++i) {
    const std::string id = std::to_string(i), label = std::to_string(i % 2);
    // Quotes inside a cell, which must be copied, and a delimiter.
    plain += label + "," + id + ",\"a \"\"red\"\" " + id + "\"\n";
    mixed += "\"a \"\"red\"\" " + id + "\",\"x,y\"," + label + "," + id + "\n";
  }
  WriteText(*files, "plain.csv", plain);
  WriteText(*files, "mixed.csv", mixed);
  data.header = true;
  for (const uint32_t parts : {1u, kPartsMany}) {
    const ReaderOptions options = {.batch_size = 128, .part = 0, .num_parts = parts};
    // One file of each kind: a row has the column order of its file.
    const auto expected = ReadEpoch(*MakeReader(*files, data, options, {"plain.csv", "plain.csv"}));
    const auto found = ReadEpoch(*MakeReader(*files, data, options, {"plain.csv", "mixed.csv"}));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t b = 0; b < found.size(); ++b) {
      EXPECT_EQ(found[b].labels, expected[b].labels);
      EXPECT_EQ(found[b].numeric, expected[b].numeric);
      EXPECT_EQ(found[b].sparse[0].keys, expected[b].sparse[0].keys);
    }
  }
}

TEST(HeaderReaderTest, MistakesInRowsOfAnotherOrderAreNamedByPlace) {
  const auto files = NewMemoryFileSystem();
  DataSpec data = NumberedRows();
  data.header = true;
  const auto error_of = [&](const std::string& text) {
    WriteText(*files, "f.csv", text);
    const auto reader = MakeReader(*files, data, {.batch_size = 4}, {"f.csv"});
    const Status started = reader->StartEpoch(0, 0);
    return started.ok() ? reader->Next().status().message() : started.message();
  };
  const std::string header = "id,more,color,label\n";
  EXPECT_THAT(error_of(header + "x,m,red,1\n"),
              HasSubstr("f.csv:2:1: 'x': expected a number in column 'id'"));
  EXPECT_THAT(error_of(header + "1,m,red\n"),
              HasSubstr("f.csv:2:8: '': expected as many cells as the header has (4)"));
  EXPECT_THAT(error_of(header + "1,m,red,1,9\n"),
              HasSubstr("f.csv:2:11: '9': expected as many cells as the header has (4)"));
  EXPECT_THAT(error_of(header + "1,\"m,red,1\n"), HasSubstr("f.csv:2:3: '\"m,red,1': expected a "
                                                            "closing quote"));
  EXPECT_THAT(error_of("id,colour,label\n1,red,1\n"),
              HasSubstr("f.csv:1: the header has no column 'color'; did you mean \"colour\"?"));
}

}  // namespace
}  // namespace hdps
