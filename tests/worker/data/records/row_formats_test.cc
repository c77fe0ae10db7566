// Tests that TFRecord files and JSON lines are read as a CSV file of the same values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/records/example_maker.h"
#include "worker/data/batch_reader.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/data_preview.h"
#include "worker/data/item_pool.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int kRows = 400;
constexpr const char* kFiles[] = {"rows.tfrecord", "rows.jsonl"};

Job RowsJob(const std::string& file, const std::string& more = "") {
  const std::string format = file.substr(file.find('.') + 1);
  const auto job = ParseJob(R"({"data": {"format": ")" + format + R"(", "train": [")" + file +
                                R"("], "shuffle_rows": 100, "header": )" +
                                (format == "csv" ? "true" : "false") + R"(,
             "columns": [{"name": "click", "type": "label"}, {"name": "user"},
                         {"name": "price", "type": "numeric", "transform": "log1p"},
                         {"name": "color"}, {"name": "tags", "type": "multi"},
                         {"name": "whose", "from": "user", "type": "numeric"},
                         {"name": "id", "from": "user", "vocab_size": 30}],
             "features": [{"name": "cross", "kind": "crossed", "from": ["user", "color"]}])" +
                                more + R"(}, "model": {"type": "logistic"}})",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

// The same rows in each format.
struct Texts {
  std::string csv = "click,user,price,color,tags\n", json, tfrecord;
};

Texts MakeRows() {
  Texts texts;
  Random random(3);
  for (int row = 0; row < kRows; ++row) {
    const std::string click = std::to_string(random.Below(2));
    const int64_t user = static_cast<int64_t>(random.Below(50)) << (row % 2 == 0 ? 0 : 40);
    const bool priced = random.Below(4) > 0, colored = random.Below(4) > 0;
    const float price = static_cast<float>(random.Below(1000)) / 4;
    const std::string color = "c" + std::to_string(random.Below(7));
    std::vector<std::string> tags(random.Below(4));
    std::string joined, listed;
    for (std::string& tag : tags) {
      tag = "t" + std::to_string(random.Below(9));
      joined += (joined.empty() ? "" : "|") + tag;
      listed += (listed.empty() ? "\"" : ", \"") + tag + "\"";
    }
    const std::string price_text = priced ? std::to_string(price) : "";
    texts.csv += click + "," + std::to_string(user) + "," + price_text + "," +
                 (colored ? color : "") + "," + joined + "\n";
    texts.json += R"({"tags": [)" + listed + R"(], "other": {"a": [1, {"user": 5}]}, "user": )" +
                  std::to_string(user) + R"(, "click": )" + (click == "1" ? "true" : "false");
    if (priced) texts.json += R"(, "price": )" + price_text;
    texts.json += colored ? R"(, "color": ")" + color + "\"}\n" : ", \"color\": null}\n";
    NamedFeatures features = {
        {"user", IntegerFeature({user}, row % 3 == 0)},
        {"unread", FloatFeature({1, 2})},
        {"tags", TextFeature(tags)},
        {"click", IntegerFeature({click == "1" ? 1 : 0})},
        {"price", FloatFeature(priced ? std::vector{price} : std::vector<float>())}};
    if (colored) features.emplace_back("color", TextFeature({color}));
    texts.tfrecord += Framed(ExampleOf(features));
  }
  return texts;
}

// Packs by gzip (31) or zlib (15).
std::string Deflated(const std::string& bytes, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class RowFormatsTest : public ::testing::Test {
 protected:
  RowFormatsTest() {
    WriteText(*files_, "rows.csv", texts_.csv);
    WriteText(*files_, "rows.jsonl", texts_.json);
    WriteText(*files_, "rows.tfrecord", texts_.tfrecord);
  }

  TwoEpochs Read(const Job& job, ReaderOptions options) {
    options.seed = job.seed;
    if (job.data.negatives.per_positive > 0) {
      options.items = std::make_shared<ItemPool>(*files_, job);
    }
    return ReadTwoEpochs(*files_, job.data, options);
  }

  // Reads the rows in all of their forms.
  void ExpectTheSame(const ReaderOptions& options, const std::string& more = "") {
    const TwoEpochs wanted = Read(RowsJob("rows.csv", more), options);
    ASSERT_EQ(wanted.problem, "");
    ASSERT_FALSE(wanted.batches.empty());
    for (const char* const name : kFiles) {
      SCOPED_TRACE(name);
      const Job job = RowsJob(name, more);
      const TwoEpochs read = Read(job, options);
      EXPECT_EQ(read.problem, "");
      ExpectSame(read.batches, wanted.batches);
      EXPECT_EQ(*CountRows(*files_, job.data, job.data.train, options), uint64_t{kRows});
    }
  }

  // Returns why a file with these bytes cannot be read; empty if it can.
  std::string Problem(const std::string& name, const std::string& bytes,
                      const std::string& more = "") {
    WriteText(*files_, name, bytes);
    return Read(RowsJob(name, more), {.batch_size = 64, .shuffle = false}).problem;
  }

  const Texts texts_ = MakeRows();
  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(RowFormatsTest, RowsAreThoseOfATextFile) {
  ExpectTheSame({.batch_size = 64, .shuffle = false});
  for (const uint32_t part : {0u, 1u, 2u}) {
    ExpectTheSame({.batch_size = 64, .part = part, .num_parts = 3});
  }
  // As many parts as make a reader of text keep an index.
  ExpectTheSame({.batch_size = 256, .part = 17, .num_parts = kPartsMany});
  ExpectTheSame({.batch_size = 64},
                R"(, "item_features": ["color", "tags"], "negatives": {"per_positive": 2})");
}

TEST_F(RowFormatsTest, ReadingGoesOnInTheMiddle) {
  for (const char* const name : kFiles) {
    const Job job = RowsJob(name);
    auto reader = NewBatchReader(*files_, job.data, job.data.train, {.batch_size = 64});
    ASSERT_TRUE(reader.ok());
    std::vector<Batch> whole = ReadEpoch(**reader, 1);
    whole.erase(whole.begin(), whole.begin() + 3);
    ExpectSame(ReadEpoch(**reader, 1, /*skip_steps=*/3), whole);
  }
}

TEST_F(RowFormatsTest, KeptRowsAreTheSame) {
  for (const char* const name : kFiles) {
    const TwoEpochs wanted = Read(RowsJob(name), {.batch_size = 64});
    RowCacheOptions caching;
    caching.memory_max = uint64_t{1} << 24;
    caching.repeats = true;
    const auto caches = std::make_shared<RowCaches>(*files_, caching);
    ExpectSame(Read(RowsJob(name), {.batch_size = 64, .cache = caches}).batches, wanted.batches);
  }
}

TEST_F(RowFormatsTest, TheSameRowsAreHeldOutHoweverTheyAreStored) {
  const std::string share = R"(, "validation_share": 0.3)";
  std::vector<TwoEpochs> held_out;
  for (const char* const name : kFiles) {
    held_out.push_back(Read(RowsJob(name, share),
                            {.batch_size = 64, .shuffle = false, .side = RowSide::kHeldOut}));
  }
  ExpectSame(held_out[0].batches, held_out[1].batches);
  ASSERT_FALSE(held_out[0].batches.empty());
  EXPECT_EQ(held_out[0].batches[0].num_examples, 64u);
}

TEST_F(RowFormatsTest, PackedFilesAreUnpacked) {
  const TwoEpochs wanted = Read(RowsJob("rows.csv"), {.batch_size = 64});
  const std::pair<std::string, std::string> packed[] = {
      {"gzip.tfrecord", Deflated(texts_.tfrecord, 31)},
      {"zlib.tfrecord", Deflated(texts_.tfrecord, 15)},
      {"gzip.jsonl", Deflated(texts_.json, 31)}};
  for (const auto& [name, bytes] : packed) {
    SCOPED_TRACE(name);
    WriteText(*files_, name, bytes);
    ExpectSame(Read(RowsJob(name), {.batch_size = 64}).batches, wanted.batches);
  }
}

TEST_F(RowFormatsTest, ALengthMayBeginAsAPackedFileDoes) {
  // 0x178 and 0x88b1f bytes: the first bytes of zlib and of gzip.
  for (const size_t bytes : {size_t{0x178}, size_t{0x088b1f}}) {
    const NamedFeatures known = {{"click", IntegerFeature({1})}};
    std::string example, text(bytes, 'x');
    do {
      text.pop_back();
      NamedFeatures features = known;
      features.emplace_back("unread", TextFeature({text}));
      example = ExampleOf(features);
    } while (example.size() > bytes);
    ASSERT_EQ(example.size(), bytes);
    EXPECT_EQ(Problem("long.tfrecord", Framed(example) + texts_.tfrecord), "");
  }
}

TEST_F(RowFormatsTest, ABadRowIsNamedByItsPlaceAndCounted) {
  const std::string good = R"({"click": 1, "user": 5})";
  EXPECT_THAT(Problem("bad.jsonl", good + "\n" + R"({"click": 1, "price": "x"})"),
              AllOf(StartsWith("bad.jsonl:2: 'x': expected a number in column 'price'"),
                    HasSubstr("(bad rows: 1, data.max_bad_rows: 0")));
  const std::string record = Framed(ExampleOf({{"click", IntegerFeature({1})}}));
  EXPECT_THAT(Problem("bad.tfrecord", record + Framed(ExampleOf({{"click", IntegerFeature({1})},
                                                                 {"price", TextFeature({"x"})}}))),
              StartsWith("bad.tfrecord:2: 'x': expected a number in column 'price'"));
  EXPECT_EQ(Problem("bad.jsonl", good + "\nno\n" + good, R"(, "max_bad_rows": 1)"), "");
  EXPECT_EQ(Problem("bad.tfrecord", record + Framed("no") + record, R"(, "max_bad_rows": 1)"), "");
}

TEST_F(RowFormatsTest, LabelsThatAreNotReadMayHaveAnyType) {
  WriteText(*files_, "bare.jsonl",
            R"({"click": {"a": [1]}, "user": 5})"
            "\n"
            R"({"click": [1, 2.5, [3]], "user": 6})"
            "\n"
            R"({"user": 7})");
  const ReaderOptions options = {.batch_size = 8, .shuffle = false, .num_classes = kLabelsNotRead};
  const TwoEpochs read = Read(RowsJob("bare.jsonl"), options);
  EXPECT_EQ(read.problem, "");
  ASSERT_EQ(read.batches.size(), 2u);
  EXPECT_EQ(read.batches[0].num_examples, 3u);
  WriteText(*files_, "bare.tfrecord",
            Framed(ExampleOf({{"click", FloatFeature({1, 2})}, {"user", IntegerFeature({5})}})));
  EXPECT_EQ(Read(RowsJob("bare.tfrecord"), options).batches.size(), 2u);
}

TEST_F(RowFormatsTest, FormatsAreNotMixed) {
  EXPECT_THAT(Problem("csv.tfrecord", texts_.csv),
              StartsWith("csv.tfrecord: this is no TFRecord file, or its first bytes are damaged: "
                         "they are 'clic'"));
  EXPECT_THAT(Problem("tf.jsonl", texts_.tfrecord),
              StartsWith("tf.jsonl: this is a TFRecord file: expected data.format to be tfrecord"));
  EXPECT_THAT(Problem("tf.csv", texts_.tfrecord), StartsWith("tf.csv: this is a TFRecord file"));
  EXPECT_THAT(Problem("csv.jsonl", texts_.csv), HasSubstr("expected a JSON object a line"));
  EXPECT_THAT(Problem("parquet.jsonl", "PAR1\x15"), HasSubstr("this is a Parquet file"));
}

TEST_F(RowFormatsTest, ANameThatNoRowHasIsAWarning) {
  for (const char* const name : kFiles) {
    Job job = RowsJob(name);
    const auto right = PreviewData(*files_, job.data, job.data.train, LabelsOf(job));
    ASSERT_TRUE(right.ok()) << right.status().message();
    EXPECT_THAT(right->warnings, IsEmpty());
    job.data.columns[2].name = "prize";
    const auto wrong = PreviewData(*files_, job.data, job.data.train, LabelsOf(job));
    ASSERT_TRUE(wrong.ok()) << wrong.status().message();
    EXPECT_THAT(wrong->warnings,
                ElementsAre(HasSubstr("column 'prize' has no value in the first 400 rows")));
  }
}

// The example of TensorFlow's tutorial "TFRecord and tf.train.Example".
TEST_F(RowFormatsTest, PublishedBytesAreRead) {
  const std::string example =
      "\nR\n\x14\n\x08"
      "feature3\x12\x08\x12\x06\n\x04[\xd3|?\n\x11\n\x08"
      "feature1\x12\x05\x1a\x03\n\x01\x04\n\x14\n\x08"
      "feature2\x12\x08\n\x06\n\x04goat\n\x11\n\x08"
      "feature0\x12\x05\x1a\x03\n\x01" +
      std::string(1, '\0');
  // Every event file of TensorBoard begins with the length 24 and this checksum.
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(MaskedSum(length), "\xa3\x7fK\"");
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);  // RFC 3720.
  WriteText(*files_, "goat.tfrecord", Framed(example));
  const auto job = ParseJob(R"({"data": {"format": "tfrecord", "train": ["goat.tfrecord"],
      "columns": [{"name": "feature0", "type": "label"}, {"name": "feature1", "type": "numeric"},
                  {"name": "feature3", "type": "numeric"}, {"name": "feature2"}]},
      "model": {"type": "logistic"}})",
                            "test", {});
  ASSERT_TRUE(job.ok()) << job.status().message();
  const TwoEpochs read = Read(*job, {.batch_size = 1});
  EXPECT_EQ(read.problem, "");
  ASSERT_EQ(read.batches.size(), 2u);
  EXPECT_EQ(read.batches[0].labels, std::vector<float>{0});
  EXPECT_EQ(read.batches[0].numeric, (std::vector<float>{4, 0.9876f}));
  EXPECT_EQ(read.batches[0].sparse[0].keys.size(), 1u);
}

}  // namespace
}  // namespace hdps
