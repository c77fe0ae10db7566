// Tests images in the IDX format: what is read, what is refused, and that any bytes are one of the
// two.
#include "worker/data/idx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <optional>

#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/data_preview.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

std::string Idx(const std::vector<uint32_t>& lengths, const std::string& elements) {
  std::string text = {0, 0, 8, static_cast<char>(lengths.size())};
  for (const uint32_t length : lengths) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(length >> shift);
  }
  return text + elements;
}

// Returns images of 2 x 3; pixel p of image i is 10 i + p.
std::string Images(uint32_t count) {
  std::string pixels;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t p = 0; p < 6; ++p) pixels += static_cast<char>(10 * i + p);
  }
  return Idx({count, 2, 3}, pixels);
}

std::string Labels(uint32_t count) {
  std::string labels;
  for (uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % 4);
  return Idx({count}, labels);
}

std::string Packed(const std::string& text) {
  std::string packed(text.size() + 100, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

DataSpec SpecOf() {
  DataSpec data;
  data.format = DataFormat::kIdx;
  data.image_shape = {2, 3};
  return data;
}

Result<std::vector<Batch>> Read(FileSystem& files, const DataSpec& data, ReaderOptions options) {
  if (options.num_classes == 2) options.num_classes = 4;
  HDPS_ASSIGN_OR_RETURN(const auto reader, NewBatchReader(files, data, {kImages}, options));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  std::vector<Batch> batches;
  while (true) {
    HDPS_ASSIGN_OR_RETURN(std::optional<Batch> batch, reader->Next());
    if (!batch) return batches;
    batches.push_back(*std::move(batch));
  }
}

std::string ErrorOf(const std::string& images, const std::string& labels,
                    const DataSpec& data = SpecOf()) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, kImages, images);
  if (!labels.empty()) WriteText(*files, kLabels, labels);
  const auto read = Read(*files, data, {.batch_size = 2, .shuffle = false});
  EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
  return read.status().message();
}

TEST(IdxTest, EveryPixelIsANumberAndEveryImageHasItsLabel) {
  for (const bool packed : {false, true}) {
    const auto files = NewMemoryFileSystem();
    WriteText(*files, kImages, packed ? Packed(Images(5)) : Images(5));
    WriteText(*files, kLabels, packed ? Packed(Labels(5)) : Labels(5));
    const auto batches = Read(*files, SpecOf(), {.batch_size = 3, .shuffle = false});
    ASSERT_TRUE(batches.ok()) << batches.status().message();
    ASSERT_EQ(batches->size(), 2u);
    EXPECT_THAT((*batches)[0].labels, ElementsAre(0, 1, 2));
    EXPECT_THAT((*batches)[1].labels, ElementsAre(3, 0));
    ASSERT_EQ((*batches)[1].numeric.size(), 12u);
    for (int p = 0; p < 6; ++p) {
      EXPECT_FLOAT_EQ((*batches)[1].numeric[static_cast<size_t>(p)],
                      static_cast<float>(30 + p) / 255);
    }
  }
}

// A worker that has one of three columns of an image keeps a third of its numbers.
TEST(IdxTest, OnlyTheKeptPixelsAreInABatch) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, kImages, Images(4));
  WriteText(*files, kLabels, Labels(4));
  DataSpec data = SpecOf();
  data.kept_numbers = {1, 4};  // The middle of both rows.
  const auto read = Read(*files, data, {.batch_size = 4, .shuffle = false});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::vector<Batch>& batches = *read;
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].num_numeric, 2u);
  ASSERT_EQ(batches[0].numeric.size(), 4u * 2) << "of 4 x 6 pixels";
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(batches[0].numeric[2 * i] * 255, 10.0f * static_cast<float>(i) + 1);
    EXPECT_FLOAT_EQ(batches[0].numeric[2 * i + 1] * 255, 10.0f * static_cast<float>(i) + 4);
  }
}

TEST(IdxTest, ColumnsTransformPixels) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, kImages, Images(2));
  WriteText(*files, kLabels, Labels(2));
  DataSpec data = SpecOf();
  data.columns.resize(7);
  data.columns[0].name = "digit";
  data.columns[0].type = ColumnType::kLabel;
  for (size_t p = 1; p < 7; ++p) {
    data.columns[p].name = "p" + std::to_string(p);
    data.columns[p].type = ColumnType::kNumeric;
    if (p < 3) continue;
    data.columns[p].transform = Transform::kStandardize;
    data.columns[p].mean = 5;
    data.columns[p].scale = 2;
  }
  const auto batches = Read(*files, data, {.batch_size = 2, .shuffle = false});
  ASSERT_TRUE(batches.ok()) << batches.status().message();
  EXPECT_THAT((*batches)[0].numeric, ElementsAre(0, 1, -1.5, -1, -0.5, 0, 10, 11, 3.5, 4, 4.5, 5));
}

TEST(IdxTest, PartsAndShufflesHaveEveryImageOnce) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, kImages, Images(20));
  WriteText(*files, kLabels, Labels(20));
  for (const uint32_t parts : {1u, 3u, 70u}) {
    std::vector<int> seen(20, 0);
    for (uint32_t part = 0; part < parts; ++part) {
      const auto batches =
          Read(*files, SpecOf(), {.seed = 3, .batch_size = 70, .part = part, .num_parts = parts});
      ASSERT_TRUE(batches.ok()) << batches.status().message();
      for (const Batch& batch : *batches) {
        for (size_t i = 0; i < batch.num_examples; ++i) {
          const auto image = static_cast<size_t>(std::lround(batch.numeric[6 * i] * 255)) / 10;
          ++seen[image];
          EXPECT_EQ(batch.labels[i], static_cast<float>(image % 4));
        }
      }
    }
    EXPECT_EQ(seen, std::vector<int>(20, 1));
  }
}

TEST(IdxTest, RowsAreHeldOutWhateverTheirBytes) {
  const auto files = NewMemoryFileSystem();
  std::string pixels;  // With the bytes of blanks, line ends and comments.
  for (int i = 0; i < 600; ++i) pixels += static_cast<char>(i % 2 == 0 ? '\n' : i / 7);
  WriteText(*files, kImages, Idx({100, 2, 3}, pixels));
  WriteText(*files, kLabels, Idx({100}, std::string(100, '\0')));
  DataSpec data = SpecOf();
  data.validation_share = 0.3;
  size_t rows[2] = {};
  for (const RowSide side : {RowSide::kTrained, RowSide::kHeldOut}) {
    const auto batches = Read(*files, data, {.batch_size = 1000, .side = side});
    ASSERT_TRUE(batches.ok());
    for (const Batch& batch : *batches) rows[side == RowSide::kHeldOut] += batch.num_examples;
  }
  EXPECT_EQ(rows[0] + rows[1], 100u);
  EXPECT_GT(rows[1], 10u);
}

TEST(IdxTest, LabelsAreFoundByName) {
  EXPECT_EQ(LabelsPathOf(kImages), kLabels);
  EXPECT_EQ(LabelsPathOf("t10k-images.idx3-ubyte.gz"), "t10k-labels.idx1-ubyte.gz");
  EXPECT_EQ(LabelsPathOf("images/digits"), "");
  EXPECT_EQ(LabelsPathOf("images/my-images"), "images/my-labels");
}

TEST(IdxTest, RowsToPredictNeedNoLabels) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, kImages, Images(5));
  const auto batches =
      Read(*files, SpecOf(), {.batch_size = 8, .shuffle = false, .num_classes = kLabelsNotRead});
  ASSERT_TRUE(batches.ok()) << batches.status().message();
  EXPECT_EQ((*batches)[0].num_examples, 5u);
}

TEST(IdxTest, ThePreviewSaysWhatIsThere) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, kImages, Images(5));
  WriteText(*files, kLabels, Labels(5));
  const auto preview = PreviewData(*files, SpecOf(), {kImages}, {{"", 4}});
  ASSERT_TRUE(preview.ok()) << preview.status().message();
  EXPECT_THAT(preview->lines[0],
              HasSubstr("format idx: a label, 6 numeric columns, 0 sparse features"));
  EXPECT_THAT(preview->lines[1], HasSubstr("train-images-idx3-ubyte:1: label 0 from label=0, "
                                           "pixel0=0, pixel1=1"));
  EXPECT_THAT(preview->lines[2], HasSubstr("label 0 in 2, label 1 in 1, label 2 in 1"));
}

TEST(IdxTest, MistakesAreNamedByFile) {
  EXPECT_THAT(ErrorOf("label,pixel0\n1,2\n", Labels(5)),
              HasSubstr("does not begin as an IDX file does"));
  EXPECT_THAT(ErrorOf("", Labels(5)), HasSubstr("cut short"));
  EXPECT_THAT(ErrorOf(Labels(5), Labels(5)), HasSubstr("one axis, as labels have"));
  EXPECT_THAT(ErrorOf(Idx({5, 3, 2}, std::string(30, 'x')), Labels(5)),
              HasSubstr("its images are 3 x 2, but data.image_shape is 2 x 3"));
  EXPECT_THAT(ErrorOf(Images(5), ""), HasSubstr("expected train-labels-idx1-ubyte"));
  EXPECT_THAT(ErrorOf(Images(5), Labels(4)), HasSubstr("of 4 labels"));
  EXPECT_THAT(ErrorOf(Images(5), Images(5)), HasSubstr("expected a label an image"));
  const std::string good = Images(5);
  EXPECT_THAT(ErrorOf(good.substr(0, good.size() - 1), Labels(5)),
              HasSubstr("train-images-idx3-ubyte: the file ends inside"));
  EXPECT_THAT(ErrorOf(good + "x", Labels(5)), HasSubstr("behind the last of the 5 x 2 x 3"));
  EXPECT_THAT(ErrorOf(good, Labels(5) + "x"),
              HasSubstr("train-labels-idx1-ubyte: there are bytes"));
  EXPECT_THAT(ErrorOf(good, Labels(5).substr(0, 12)), HasSubstr("train-labels-idx1-ubyte: the file "
                                                                "ends inside"));
  std::string floats = good;
  floats[2] = 13;
  EXPECT_THAT(ErrorOf(floats, Labels(5)), HasSubstr("of type 13: expected 8, unsigned bytes"));
  EXPECT_THAT(ErrorOf(good, Idx({5}, std::string("\0\1\2\3\7", 5))),
              HasSubstr("train-images-idx3-ubyte:5:1: '7': expected a label"));
}

TEST(IdxTest, AnyBytesAreRowsOrRefused) {
  Random random(11);
  DataSpec data = SpecOf();
  data.max_bad_rows = 1 << 30;
  int good = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string images = Images(6), labels = Labels(6);
    for (std::string* text : {&images, &labels}) {
      for (uint64_t n = random.Below(3); n > 0; --n) {
        const size_t at = random.Below(std::min<size_t>(text->size(), 24));
        const uint64_t kind = random.Below(4);
        if (kind == 0) {
          text->resize(at);
          break;
        }
        if (kind == 1) {
          text->insert(at, 1, static_cast<char>(random.Below(256)));
        } else {
          (*text)[at] = static_cast<char>(random.Below(kind == 2 ? 256 : 10));
        }
      }
    }
    const auto files = NewMemoryFileSystem();
    WriteText(*files, kImages, images);
    WriteText(*files, kLabels, labels);
    const auto batches = Read(*files, data, {.batch_size = 4});
    if (!batches.ok()) {
      EXPECT_EQ(batches.status().code(), Code::kInvalidArgument) << batches.status().message();
      ++refused;
      continue;
    }
    ++good;
    for (const Batch& batch : *batches) {
      ASSERT_EQ(batch.numeric.size(), 6 * batch.num_examples);
      for (const float pixel : batch.numeric) EXPECT_TRUE(pixel >= 0 && pixel <= 1);
      for (const float label : batch.labels) EXPECT_TRUE(label >= 0 && label < 4);
    }
  }
  EXPECT_GT(good, 200);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace hdps
