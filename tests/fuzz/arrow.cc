// Fuzzes record batches of other libraries: with any offsets, indices, views and counts, a batch is
// refused, or its lines hold the texts of its cells.
#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/column_stream.h"
#include "worker/data/records/batch_lines.h"

namespace hdps::fuzz {
namespace {

constexpr const char* kFormats[] = {"n", "b",  "c",  "s",  "i",   "l",     "C",          "S",
                                    "I", "L",  "e",  "f",  "g",   "u",     "z",          "U",
                                    "Z", "vu", "+l", "+L", "tdD", "d:9,2", "d:40,2,256", "+s"};
constexpr size_t kTextBytes = 128;

// Returns `bytes` of the input, with zeros behind its end.
std::string Filled(Input& input, size_t bytes) {
  std::string buffer(input.TakeBytes(bytes));
  buffer.resize(bytes);
  return buffer;
}

// Returns offsets of texts, which may go backwards or be negative, but not beyond the bytes: a
// batch does not tell how many there are.
template <typename Offset>
std::string TextOffsets(Input& input, size_t cells) {
  std::vector<Offset> offsets;
  for (size_t i = 0; i <= cells; ++i) {
    const auto step = static_cast<int8_t>(input.Take());
    const Offset before = offsets.empty() ? 0 : offsets.back();
    offsets.push_back(std::min<Offset>(before + step % 16, kTextBytes));
  }
  return hdps::BytesOf(offsets);
}

MadeColumn ColumnOf(Input& input, int64_t length, bool nested) {
  MadeColumn column;
  column.format = kFormats[input.Take() % std::size(kFormats)];
  column.name = "c";
  column.offset = input.Take() % 4;
  column.length = length;
  column.null_count = static_cast<int8_t>(input.Take()) % 3;
  const auto cells = static_cast<size_t>(column.offset + column.length);
  const std::string& format = column.format;
  if (format == "n") return column;
  column.buffers.push_back(Filled(input, cells / 8 + 1));
  if (format == "u" || format == "z") {
    column.buffers.push_back(TextOffsets<int32_t>(input, cells));
    column.buffers.push_back(Filled(input, kTextBytes));
  } else if (format == "U" || format == "Z") {
    column.buffers.push_back(TextOffsets<int64_t>(input, cells));
    column.buffers.push_back(Filled(input, kTextBytes));
  } else if (format == "vu") {
    column.buffers.push_back(Filled(input, 16 * cells));
    column.buffers.push_back(Filled(input, kTextBytes));
    column.buffers.push_back(hdps::BytesOf(std::vector<int64_t>{kTextBytes}));
  } else {
    constexpr size_t kWidest = 32;
    column.buffers.push_back(Filled(input, kWidest * (cells + 1)));
  }
  if (nested) return column;
  if (format[0] == '+') {
    column.children.push_back(ColumnOf(input, input.Take() % 16, /*nested=*/true));
  } else if (input.Take() % 4 == 0) {
    column.dictionary.push_back(ColumnOf(input, input.Take() % 16, /*nested=*/true));
  }
  return column;
}

// Compares the cells of a line with the texts that a table's reader finds.
void CheckLine(std::string_view line, const ColumnTable& table, int64_t row,
               const std::vector<uint32_t>& columns) {
  for (const uint32_t c : columns) {
    const std::optional<CellValue> cell = TakeCell(&line);
    CHECK(cell);
    const CellType& type = table.columns()[c].type;
    std::string text, wanted;
    ForEachValue(*cell, [&text](std::string_view value) { text += value; });
    ColumnTexts(type, "").Append(table.chunk(0, c), row, &wanted);
    CHECK(text == wanted) << text << " and " << wanted;
  }
  CHECK(line.empty());
}

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  const int64_t rows = input.Take() % 16;
  std::vector<MadeColumn> batch;
  for (int columns = input.Take() % 4; columns >= 0; --columns) {
    batch.push_back(ColumnOf(input, rows, /*nested=*/false));
  }
  ArrowArrayStream stream;
  Export({{std::move(batch)}}, &stream);
  const Result<std::unique_ptr<ColumnStream>> batches = ColumnStream::Open(&stream);
  if (!batches.ok()) return Refused(batches.status(), Code::kInvalidArgument);
  const Result<std::shared_ptr<const ColumnTable>> table = (*batches)->Next();
  if (!table.ok()) return Refused(table.status(), Code::kInvalidArgument);
  if ((*table)->num_rows() == 0) return Verdict::kRefused;
  std::vector<uint32_t> columns;
  for (uint32_t c = 0; c < (*table)->columns().size(); ++c) {
    if ((*table)->columns()[c].type.kind != CellKind::kOther) columns.push_back(c);
  }
  CellLineWriter lines;
  CHECK(BatchLines((*table)->columns(), columns).Add(**table, 0, rows, &lines).ok());
  const char* at = lines.data();
  for (int64_t row = 0; row < rows; ++row) {
    uint32_t size = 0;
    std::memcpy(&size, at, sizeof(size));
    CheckLine({at + sizeof(size), size}, **table, row, columns);
    at += sizeof(size) + size;
  }
  CHECK(at == lines.data() + lines.size());
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (size_t format = 0; format < std::size(kFormats); ++format) {
    // Three rows of two columns, all of whose cells are there.
    std::string seed = "\x03\x01";
    for (int column = 0; column < 2; ++column) {
      seed += static_cast<char>(format);
      seed += std::string("\0\0\xff", 3);
      for (int i = 0; i < 12; ++i) seed += std::string("\1\0\0\0", 4);
    }
    seeds.push_back(seed);
  }
  return seeds;
}

const AddTarget arrow({"arrow", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
