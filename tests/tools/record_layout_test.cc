// Tests what prepare reads of TFRecord files and JSON lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/records/example_maker.h"
#include "tools/prepare/data_layout.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordLayoutTest : public ::testing::Test {
 protected:
  DataLayout Told(const std::string& bytes) {
    WriteText(*files_, "f", bytes);
    const Result<DataLayout> layout = TellLayout(*files_, "f");
    EXPECT_TRUE(layout.ok()) << layout.status().message();
    return layout.ok() ? *layout : DataLayout();
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(RecordLayoutTest, JsonLinesHaveNamesAndKinds) {
  const DataLayout layout = Told(
      "{\"y\": 1, \"user\": 7, \"tags\": [\"a\"], \"price\": 5, \"at\": {\"h\": 1}}\n"
      "no object\n"
      "{\"y\": 0, \"price\": 2.5, \"late\": \"x\", \"tags\": null, \"sizes\": [1.5]}\n");
  EXPECT_EQ(layout.format, DataFormat::kJsonl);
  EXPECT_THAT(layout.names, ElementsAre("y", "user", "tags", "price", "late"));
  EXPECT_THAT(layout.lists, ElementsAre("tags"));
  EXPECT_THAT(layout.fractions, ElementsAre("price"));
  EXPECT_THAT(layout.notes,
              ElementsAre(HasSubstr("'at' has objects"), HasSubstr("'sizes' has lists of fra")));
}

TEST_F(RecordLayoutTest, ExamplesHaveNamesAndKinds) {
  const DataLayout layout =
      Told(Framed(ExampleOf({{"y", IntegerFeature({1})},
                             {"tags", TextFeature({"a"})},
                             {"none", TextFeature({})},
                             {"price", FloatFeature({2})}})) +
           Framed(ExampleOf({{"tags", TextFeature({"a", "b"})}, {"sizes", FloatFeature({1, 2})}})));
  EXPECT_EQ(layout.format, DataFormat::kTfrecord);
  EXPECT_THAT(layout.names, ElementsAre("price", "tags", "y"));
  EXPECT_THAT(layout.lists, ElementsAre("tags"));
  EXPECT_THAT(layout.fractions, ElementsAre("price"));
  EXPECT_THAT(layout.notes, ElementsAre(HasSubstr("'sizes' has lists of fractions")));
}

TEST_F(RecordLayoutTest, RecordsWithoutColumnsAreRefused) {
  WriteText(*files_, "f", "{\"a\": {}}\n");
  EXPECT_THAT(TellLayout(*files_, "f").status().message(),
              HasSubstr("no column of a type that is read: expected "));
  WriteText(*files_, "f", Framed("no example"));
  EXPECT_THAT(TellLayout(*files_, "f").status().message(),
              HasSubstr("no column of a type that is read: expected "));
}

}  // namespace
}  // namespace hdps
