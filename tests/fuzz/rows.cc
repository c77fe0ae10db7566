// Fuzzes data files of each format: with any bytes, batches keep their invariants, every row is
// returned or counted as bad, and several readers together return what one does.
#include <glog/logging.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "tests/fuzz/target.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_preview.h"
#include "worker/data/idx_file.h"

namespace hdps::fuzz {
namespace {

constexpr const char* kPath = "data/train-images-idx3.txt";
constexpr const char* kLabelsPath = "data/train-labels-idx1.txt";

void CheckBatch(const Batch& batch, const FeatureNames& names) {
  const size_t n = batch.num_examples;
  CHECK_EQ(batch.labels.size(), n * batch.num_labels);
  CHECK(batch.weights.empty() || batch.weights.size() == n);
  CHECK(batch.groups.empty() || batch.groups.size() == n);
  CHECK_EQ(batch.num_numeric, names.numeric.size());
  CHECK_EQ(batch.numeric.size(), n * batch.num_numeric);
  CHECK_EQ(batch.sparse.size(), names.sparse.size());
  for (const float label : batch.labels) CHECK(std::isfinite(label));
  for (const float weight : batch.weights) CHECK(std::isfinite(weight));
  for (const SparseColumn& column : batch.sparse) {
    CHECK_EQ(column.offsets.size(), n + 1);
    CHECK_EQ(column.offsets.front(), 0u);
    for (size_t i = 0; i < n; ++i) CHECK_LE(column.offsets[i], column.offsets[i + 1]);
    CHECK_EQ(column.offsets.back(), column.keys.size());
    CHECK(column.weights.empty() || column.weights.size() == column.keys.size());
    for (const float weight : column.weights) CHECK(std::isfinite(weight));
  }
}

struct Read {
  Status status;
  uint64_t examples = 0, bad_rows = 0;
};

Read ReadAll(FileSystem& files, const DataSpec& data, const ReaderOptions& options) {
  Read read;
  Result<std::unique_ptr<BatchReader>> reader = NewBatchReader(files, data, {kPath}, options);
  read.status = reader.ok() ? (*reader)->StartEpoch(1, 0) : reader.status();
  while (read.status.ok()) {
    const Result<std::optional<Batch>> batch = (*reader)->Next();
    if (!batch.ok()) read.status = batch.status();
    if (!batch.ok() || !batch->has_value()) break;
    CheckBatch(**batch, FeaturesOf(data));
    read.examples += (*batch)->num_examples;
  }
  if (read.status.ok()) read.bad_rows = (*reader)->bad_rows();
  return read;
}

// Buffers of a reader cost more than the few rows, so an input does not run all kinds of readers.
enum class Readers : uint8_t { kOne, kCount, kParts, kPreview };

Verdict Check(FileSystem& files, const DataSpec& data, uint32_t num_classes, uint8_t flags) {
  ReaderOptions options;
  options.batch_size = 3;
  options.shuffle = (flags & 32) != 0;
  options.num_classes = num_classes;
  const auto readers = static_cast<Readers>(flags >> 6);
  const Read whole = ReadAll(files, data, options);
  if (readers == Readers::kPreview) {
    const auto preview = PreviewData(files, data, {kPath}, options.LabelsWanted());
    if (!preview.ok()) Refused(preview.status(), Code::kInvalidArgument);
  }
  if (!whole.status.ok()) return Refused(whole.status, Code::kInvalidArgument);
  if (readers == Readers::kCount) {
    const Result<uint64_t> rows = CountRows(files, data, {kPath}, options);
    CHECK(rows.ok()) << rows.status().message();
    CHECK_EQ(whole.examples + whole.bad_rows, *rows);
  }
  if (readers == Readers::kParts) {
    uint64_t examples = 0;
    options.num_parts = 2;
    for (options.part = 0; options.part < 2; ++options.part) {
      const Read part = ReadAll(files, data, options);
      CHECK(part.status.ok()) << part.status.message();
      examples += part.examples;
    }
    CHECK_EQ(examples, whole.examples);
  }
  return whole.examples > 0 ? Verdict::kAccepted : Verdict::kRefused;
}

// The first byte has options of the format; the rest is the file.
Verdict RunText(DataSpec data, std::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Take();
  data.header = (flags & 1) != 0 && data.format == DataFormat::kCsv;
  data.shuffle_rows = 4;
  data.max_bad_rows = (flags & 2) != 0 ? 0 : std::numeric_limits<int64_t>::max();
  if ((flags & 4) != 0) data.comment = "#";
  if ((flags & 8) != 0 && data.format == DataFormat::kCsv) data.delimiter = "\t";
  const uint32_t num_classes = (flags & 16) != 0 ? kLabelsAnyNumber : 2;
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, kPath, input.TakeRest());
  return Check(*files, data, num_classes, flags);
}

std::vector<std::string> WithOptions(const std::string& text) {
  return {'\0' + text, '\x42' + text, '\x74' + text, '\x80' + text, '\xc0' + text};
}

DataSpec CsvSpec() {
  DataSpec data;
  data.missing = "?";
  const auto add = [&](const char* name, ColumnType type) -> ColumnSpec& {
    ColumnSpec& column = data.columns.emplace_back();
    column.name = name;
    column.type = type;
    return column;
  };
  add("y", ColumnType::kLabel).positive = {"yes", "1"};
  add("x", ColumnType::kNumeric).transform = Transform::kLog1p;
  add("c", ColumnType::kCategorical);
  add("tags", ColumnType::kMulti);
  add("w", ColumnType::kWeight);
  add("user", ColumnType::kGroup);
  FeatureSpec& range = data.features.emplace_back();
  range.name = "range";
  range.kind = FeatureKind::kBucketized;
  range.from = {"x"};
  range.boundaries = {1, 2.5};
  FeatureSpec& cross = data.features.emplace_back();
  cross.name = "cross";
  cross.from = {"c", "range"};
  cross.hash_buckets = 1000;
  return data;
}
Verdict RunCsv(std::string_view bytes) { return RunText(CsvSpec(), bytes); }
std::vector<std::string> CsvSeeds() {
  std::vector<std::string> seeds = WithOptions(
      "yes,1.5,\"a \"\"b\"\", c\",t1|t2,1,u1\n"
      "no,?,b,,0.5,u2\r\n"
      "# comment\n\n1,-2e3,c,t1,2,u1\nbad,x,c\n");
  seeds.push_back("\1y,x,c,tags,w,user\nyes,1,a,b|c,1,u\n");
  seeds.push_back("\x0byes\t1\ta\tb|c\t1\tu\n0\t2\tb\t\t1\tu");
  return seeds;
}

DataSpec SpecOf(DataFormat format) {
  DataSpec data;
  data.format = format;
  data.num_fields = format == DataFormat::kLibsvm ? 1 : 3;
  return data;
}
Verdict RunCriteo(std::string_view bytes) { return RunText(SpecOf(DataFormat::kCriteo), bytes); }
std::vector<std::string> CriteoSeeds() {
  std::string row = "1";
  for (int i = 0; i < 13; ++i) row += i % 3 == 0 ? "\t" : "\t" + std::to_string(i - 2);
  for (int c = 0; c < 26; ++c) row += c % 5 == 0 ? "\t" : "\t68fd1e6" + std::to_string(c % 10);
  return WithOptions(row + "\n0" + row.substr(1) + "\r\nshort\t1\n");
}
Verdict RunLibsvm(std::string_view bytes) { return RunText(SpecOf(DataFormat::kLibsvm), bytes); }
std::vector<std::string> LibsvmSeeds() {
  return WithOptions("+1 1:0.5 7:1e-3 9 # words\n-1 2:1 18446744073709551615:2\n0\nx 1:1\n");
}
Verdict RunLibffm(std::string_view bytes) { return RunText(SpecOf(DataFormat::kLibffm), bytes); }
std::vector<std::string> LibffmSeeds() {
  return WithOptions("1 0:1:0.5 1:7:1 2:9:1\n0 0:1:1 0:2:1\n1 3:1:1\n");
}
Verdict RunLibfm(std::string_view bytes) { return RunText(SpecOf(DataFormat::kLibfm), bytes); }
std::vector<std::string> LibfmSeeds() {
  return WithOptions("1 1:1 7:1 9:1\n0 1:1 2:1\n-1 1 2 3\n");
}

// Images of 2 by 3, and the file of their labels.
DataSpec IdxSpec() {
  DataSpec data;
  data.format = DataFormat::kIdx;
  data.image_shape = {2, 3};
  data.shuffle_rows = 4;
  data.max_bad_rows = std::numeric_limits<int64_t>::max();
  return data;
}
Verdict RunIdx(std::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Take();
  const std::string_view images = input.TakeBytes(input.Take<uint16_t>());
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, kPath, images);
  if ((flags & 1) == 0) {
    PutFile(*files, kLabelsPath, input.TakeRest());
  }
  return Check(*files, IdxSpec(), (flags & 2) != 0 ? 10u : 2u, flags);
}
std::vector<std::string> IdxSeeds() {
  const std::string images =
      std::string("\0\0\x8\3\0\0\0\3\0\0\0\2\0\0\0\3", 16) + "abcdefghijklmnopqr";
  const std::string labels = std::string("\0\0\x8\1\0\0\0\3\0\1\5", 11);
  const std::string size = BytesOf(static_cast<uint16_t>(images.size()));
  return {'\0' + size + images + labels, '\x62' + size + images + labels,
          '\x82' + size + images + labels, '\1' + size + images};
}

const AddTarget csv({"csv", RunCsv, CsvSeeds});
const AddTarget criteo({"criteo", RunCriteo, CriteoSeeds});
const AddTarget libsvm({"libsvm", RunLibsvm, LibsvmSeeds});
const AddTarget libffm({"libffm", RunLibffm, LibffmSeeds});
const AddTarget libfm({"libfm", RunLibfm, LibfmSeeds});
const AddTarget idx({"idx", RunIdx, IdxSeeds});

}  // namespace
}  // namespace hdps::fuzz
