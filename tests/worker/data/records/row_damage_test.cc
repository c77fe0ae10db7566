// Tests that TFRecord files and JSON lines that are damaged or do not fit the job are named, with
// what is wrong and what helps, and that no damage ends the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/records/example_maker.h"
#include "worker/data/batch_reader.h"
#include "worker/data/line_reader.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Job SmallJob(const std::string& format, int max_bad_rows) {
  const auto job = ParseJob(R"({"data": {"format": ")" + format + R"(", "train": ["file"],
      "max_bad_rows": )" + std::to_string(max_bad_rows) +
                                R"(,
      "columns": [{"name": "click", "type": "label"}, {"name": "user"},
                  {"name": "age", "type": "numeric"}, {"name": "tags", "type": "multi"}]},
      "model": {"type": "logistic"}})",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

std::string Problem(const std::string& format, const std::string& bytes, int max_bad_rows = 0) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "file", bytes);
  return ReadTwoEpochs(*files, SmallJob(format, max_bad_rows).data,
                       {.batch_size = 64, .shuffle = false})
      .problem;
}

std::string LowestFirst(uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

NamedFeatures Good() {
  return {{"click", IntegerFeature({1})},
          {"user", IntegerFeature({7})},
          {"age", FloatFeature({31.5f})},
          {"tags", TextFeature({"a", "b"})}};
}

std::string With(const std::string& name, const std::string& feature) {
  NamedFeatures features = Good();
  for (auto& [known, value] : features) {
    if (known == name) value = feature;
  }
  return Framed(ExampleOf(features));
}

// Two records, of which the second one is replaced or damaged.
const std::string kFirst = Framed(ExampleOf(Good()));

std::string Flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(~bytes[at]);
  return bytes;
}

struct Damage {
  const char* name;
  std::string bytes;
  const char* message;  // A part of the error.
  bool ends = true;     // The job ends whatever data.max_bad_rows is.
};

constexpr const char* kNoTfrecord = "file: this is no TFRecord file, or its first bytes are ";
constexpr const char* kLength = "file:2: the length of this record, ";
constexpr const char* kContents = "file:2: this record, of ";

std::vector<Damage> TfrecordDamages() {
  const std::string& first = kFirst;
  const std::string length = LowestFirst(uint64_t{1} << 40), nested = ExampleOf({{"x", "\xff"}});
  std::vector<Damage> damages = {
      {"of_a_byte", first.substr(0, 1), kNoTfrecord},
      {"of_11_bytes", first.substr(0, 11), kNoTfrecord},
      {"without_its_first_byte", first.substr(1), kNoTfrecord},
      {"text", "click,user\n1,2\n", kNoTfrecord},
      {"zeros", std::string(64, '\0'), kNoTfrecord},
      {"first_length_flipped", Flipped(first, 0), kNoTfrecord},
      {"first_sum_flipped", Flipped(first, 9), kNoTfrecord},
      {"parquet", "PAR1\x15" + std::string(64, 'x'), "they are 'PAR1'"},
      {"head_alone", first.substr(0, 12), "file:1: this record has 0 of "},
      {"first_cut", first.substr(0, 30), "file:1: this record has 18 of "},
      {"second_head_cut", first + first.substr(0, 7), "file:2: this record has 7 of the 12 bytes"},
      {"second_cut_by_a_byte", first + first.substr(0, first.size() - 1),
       "bytes of contents and checksum"},
      {"second_without_sum", first + first.substr(0, first.size() - 4), "file:2: this record has "},
      {"newline_between", first + "\n" + first, kLength},
      {"newline_behind", first + "\n", "file:2: this record has 1 of the 12 bytes"},
      {"second_length_flipped", first + Flipped(first, 3), kLength},
      {"second_sum_of_length_flipped", first + Flipped(first, 8), kLength},
      {"second_contents_flipped", first + Flipped(first, 20), kContents},
      {"second_last_byte_flipped", first + Flipped(first, first.size() - 1), kContents},
      {"sum_not_masked",
       first + first.substr(0, first.size() - 4) + LowestFirst(Crc32c("")).substr(0, 4), kContents},
      {"longer_than_memory", first + length + MaskedSum(length),
       "file:2: a record of 1099511627776 bytes: expected at most 16777216"},
      {"gzip_cut", "\x1f\x8b\x08" + std::string(20, '\0'), "(gzip): "},
      {"zlib_damaged", "\x78\x9c" + std::string(20, '\xff'), "(zlib): "},
      {"zstd_damaged", "\x28\xb5\x2f\xfd" + std::string(20, '\xff'), "(zstd): "},
      {"no_example", first + Framed("\xff\xff"), "expected a tf.train.Example", false},
      {"cut_example", first + Framed(ExampleOf(Good()).substr(0, 20)),
       "expected a tf.train.Example", false},
      {"no_feature", first + Framed(nested), "expected a tf.train.Example", false},
      {"empty_record", first + Framed(""), "in column 'click'", false},
      {"two_labels", first + With("click", IntegerFeature({1, 0})),
       "file:2: 'a list of 2': expected one value a row, or a column of type multi in column "
       "'click'",
       false},
      {"two_kinds", first + With("user", TextFeature({"a"}) + IntegerFeature({7})),
       "file:2: '': expected values of one kind in column 'user'", false},
      {"float_as_key", first + With("user", FloatFeature({1.5f})),
       "file:2: 'a float': expected integers or texts, because", false},
      {"floats_as_keys", first + With("tags", FloatFeature({1.5f, 2})),
       "file:2: 'a list of 2': expected integers or texts, because", false},
      {"text_as_number", first + With("age", TextFeature({"old"})),
       "file:2: 'old': expected a number in column 'age'", false},
      {"infinite_number", first + With("age", FloatFeature({INFINITY})),
       "file:2: 'inf': expected a number in column 'age'", false}};
  NamedFeatures twice = Good();
  twice.emplace_back("user", IntegerFeature({8}));
  damages.push_back({"name_twice", first + Framed(ExampleOf(twice)),
                     "expected one feature of this name in column 'user'", false});
  return damages;
}

std::vector<Damage> JsonDamages() {
  const std::string good = R"({"click": 1, "user": 7, "age": 31.5, "tags": ["a", "b"]})";
  const std::string first = good + "\n";
  const auto row = [&first](const std::string& more) { return first + "{\"click\": 1, " + more; };
  constexpr const char* kNoObject = "expected a JSON object a line";
  return {
      {"csv", first + "1,7,31.5,a|b\n", kNoObject, false},
      {"list", first + "[1, 7]\n", "'[': expected a JSON object a line", false},
      {"list_of_objects", "[" + good + ",\n" + good + "]\n", kNoObject, false},
      {"number", first + "5\n", kNoObject, false},
      {"text", first + "\"click\"\n", kNoObject, false},
      {"null", first + "null\n", kNoObject, false},
      {"cut", first + good.substr(0, 20), kNoObject, false},
      {"cut_in_a_text", first + good.substr(0, good.size() - 4), kNoObject, false},
      {"two_objects", first + good + good, kNoObject, false},
      {"comma_behind", first + good + ",", kNoObject, false},
      {"comma_inside", row(R"("user": 7,})"), kNoObject, false},
      {"no_colon", row(R"("user" 7})"), kNoObject, false},
      {"single_quotes", first + "{'click': 1}\n", kNoObject, false},
      {"comment", row("/* none */ \"user\": 7}"), kNoObject, false},
      {"nan", row(R"("age": NaN})"), kNoObject, false},
      {"infinity", row(R"("age": -Infinity})"), kNoObject, false},
      {"huge_number", row(R"("age": 1e400})"), kNoObject, false},
      {"number_with_zeros", row(R"("user": 007})"), kNoObject, false},
      {"bad_escape", row(R"("user": "\x41"})"), kNoObject, false},
      {"half_surrogate", row(R"("user": "\ud800"})"), kNoObject, false},
      {"latin_1", row("\"user\": \"caf\xe9\"}"), kNoObject, false},
      {"control_character", row("\"user\": \"a\x01\"}"), kNoObject, false},
      {"zero_byte", first + std::string("{\"click\": 1\0}", 13), kNoObject, false},
      {"over_two_lines", first + "{\"click\": 1,\n\"user\": 7}\n", kNoObject, false},
      {"object_as_key", row(R"("user": {"id": 7}})"),
       "file:2: '{': expected integers, decimals, floating-point numbers, bools or texts", false},
      {"list_as_key", row(R"("user": [7]})"),
       "file:2: '[': expected one value a row, or a column of type multi in column 'user'", false},
      {"list_of_lists", row(R"("tags": [["a"]]})"), "in column 'tags'", false},
      {"list_of_objects_inside", row(R"("tags": [{"a": 1}]})"), "in column 'tags'", false},
      {"fraction_as_key", row(R"("user": 7.0})"),
       "file:2: '7.0': expected integers or texts, because", false},
      {"fractions_as_keys", row(R"("tags": [1, 2.5]})"), "'2.5': expected integers or texts",
       false},
      {"text_as_number", row(R"("age": "old"})"),
       "file:2: 'old': expected a number in column 'age'", false},
      {"name_twice", row(R"("user": 7, "user": 8})"), "the name stands there twice", false},
      {"no_label", first + R"({"user": 7})", "in column 'click'", false},
      {"two_labels", first + R"({"click": [1, 0]})", "in column 'click'", false},
      {"deep", row("\"unread\": " + std::string(100000, '[')), kNoObject, false},
      {"gzip_cut", "\x1f\x8b\x08" + std::string(20, '\0'), "(gzip): "},
      {"too_long", first + std::string(kLineBytesMax + 2, ' '), "a line of more than "}};
}

void ExpectNamed(const std::string& format, const std::vector<Damage>& damages) {
  EXPECT_GE(damages.size(), 30u);
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    EXPECT_THAT(Problem(format, damage.bytes),
                AllOf(HasSubstr("file"), HasSubstr(damage.message), HasSubstr("expected ")));
    // Bad rows are passed over if the job allows them, damaged files are not.
    EXPECT_EQ(Problem(format, damage.bytes, 10) != "", damage.ends);
  }
}

TEST(RowDamageTest, DamagedTfrecordFilesAreNamed) { ExpectNamed("tfrecord", TfrecordDamages()); }
TEST(RowDamageTest, DamagedJsonLinesAreNamed) { ExpectNamed("jsonl", JsonDamages()); }

TEST(RowDamageTest, AnyFlippedByteOfATfrecordFileIsNoticed) {
  const std::string whole = kFirst + kFirst;
  EXPECT_EQ(Problem("tfrecord", whole), "");
  for (size_t at = 0; at < whole.size(); ++at) {
    EXPECT_THAT(Problem("tfrecord", Flipped(whole, at), 10), StartsWith("file:")) << at;
  }
}

TEST(RowDamageTest, AnyDamagedExampleIsARowOrABadRow) {
  Random random(5);
  const std::string good = ExampleOf(Good());
  std::string file;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = good;
    for (uint64_t change = 0; change <= random.Below(3); ++change) {
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
    }
    file += Framed(damaged);
  }
  EXPECT_EQ(Problem("tfrecord", file, 3000), "");
  EXPECT_THAT(Problem("tfrecord", file, 100), HasSubstr("(bad rows: 101,"));
}

TEST(RowDamageTest, AnyDamagedLineIsARowOrABadRow) {
  Random random(6);
  const std::string good = R"({"click": 1, "user": "x\u00e9", "age": 31.5, "tags": ["a", null]})";
  std::string file;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = good;
    for (uint64_t change = 0; change <= random.Below(3); ++change) {
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
    }
    file += damaged + "\n";
  }
  EXPECT_EQ(Problem("jsonl", file, 6000), "");
  EXPECT_THAT(Problem("jsonl", file, 100), HasSubstr("(bad rows: 101,"));
}

}  // namespace
}  // namespace hdps
