// Takes a table out of an Arrow C stream: types from its schema, chunks from its batches.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "worker/data/columnar/arrow_abi.h"
#include "worker/data/columnar/cell_layout.h"
#include "worker/data/columnar/column_stream.h"
#include "worker/data/columnar/columns.h"

namespace hdps {
namespace {

Status Wrong(const std::string& what) { return {Code::kInvalidArgument, what}; }

struct NamedKind {
  const char* format;
  CellKind kind;
  const char* name;
};
constexpr NamedKind kKinds[] = {{"n", CellKind::kNull, "null"},
                                {"b", CellKind::kBool, "bool"},
                                {"c", CellKind::kInt8, "int8"},
                                {"s", CellKind::kInt16, "int16"},
                                {"i", CellKind::kInt32, "int32"},
                                {"l", CellKind::kInt64, "int64"},
                                {"C", CellKind::kUint8, "uint8"},
                                {"S", CellKind::kUint16, "uint16"},
                                {"I", CellKind::kUint32, "uint32"},
                                {"L", CellKind::kUint64, "uint64"},
                                {"e", CellKind::kFloat16, "float16"},
                                {"f", CellKind::kFloat32, "float32"},
                                {"g", CellKind::kFloat64, "float64"},
                                {"u", CellKind::kText, "text"},
                                {"z", CellKind::kText, "binary"},
                                {"U", CellKind::kLargeText, "large text"},
                                {"Z", CellKind::kLargeText, "large binary"},
                                {"vu", CellKind::kTextViews, "text view"},
                                {"vz", CellKind::kTextViews, "binary view"},
                                {"+l", CellKind::kList, "list"},
                                {"+L", CellKind::kLargeList, "large list"}};

// Types that hdps does not read, by the beginning of their format.
constexpr std::pair<std::string_view, const char*> kOtherNames[] = {{"d:", "decimal"},
                                                                    {"td", "date"},
                                                                    {"tt", "time"},
                                                                    {"ts", "timestamp"},
                                                                    {"tD", "duration"},
                                                                    {"ti", "interval"},
                                                                    {"w:", "fixed-size binary"},
                                                                    {"+w", "fixed-size list"},
                                                                    {"+vl", "list view"},
                                                                    {"+vL", "large list view"},
                                                                    {"+s", "struct"},
                                                                    {"+m", "map"},
                                                                    {"+u", "union"},
                                                                    {"+r", "run-end encoded"}};

// Returns the kind of a decimal, "d:19,2" or "d:76,10,256", and its scale; kOther for one that hdps
// does not read.
CellType DecimalType(const std::string& format) {
  int digits = 0, scale = 0, bits = 128;
  if (std::sscanf(format.c_str(), "d:%d,%d,%d", &digits, &scale, &bits) < 2 || digits < 1 ||
      digits > kDecimalDigitsMax || scale < 0 || scale > digits || (bits != 128 && bits != 256)) {
    return {CellKind::kOther, nullptr, "decimal"};
  }
  return {bits == 128 ? CellKind::kDecimal128 : CellKind::kDecimal256, nullptr, "decimal",
          static_cast<uint8_t>(scale)};
}

std::string OtherName(std::string_view format) {
  for (const auto& [begin, name] : kOtherNames) {
    if (format.starts_with(begin)) return name;
  }
  return EscapeUntrusted(format);
}

Result<CellType> TypeOf(const ArrowSchema* schema, bool outermost) {
  if (schema == nullptr || schema->release == nullptr || schema->format == nullptr) {
    return Wrong("its type is missing or was released");
  }
  const std::string_view format = schema->format;
  CellType type{CellKind::kOther, nullptr, OtherName(format)};
  for (const NamedKind& known : kKinds) {
    if (format == known.format) type = {known.kind, nullptr, known.name};
  }
  if (format.starts_with("d:")) type = DecimalType(std::string(format));
  if (schema->dictionary != nullptr) {
    HDPS_ASSIGN_OR_RETURN(CellType values, TypeOf(schema->dictionary, /*outermost=*/false));
    const bool simple = IsInteger(type.kind) && !IsList(values.kind) && !values.is_dictionary() &&
                        values.kind != CellKind::kOther;
    const std::string name = "dictionary of " + values.name;
    if (!simple) return CellType{CellKind::kOther, nullptr, name};
    return CellType{type.kind, std::make_shared<const CellType>(std::move(values)), name};
  }
  if (!IsList(type.kind)) return type;
  // What is nested deeper is not looked at.
  if (!outermost) return CellType{CellKind::kOther, nullptr, "list inside of another type"};
  if (schema->n_children != 1 || schema->children == nullptr) {
    return Wrong("its lists have no type of their values");
  }
  HDPS_ASSIGN_OR_RETURN(CellType values, TypeOf(schema->children[0], /*outermost=*/false));
  type.name += " of " + values.name;
  if (values.kind == CellKind::kOther) return CellType{CellKind::kOther, nullptr, type.name};
  type.values = std::make_shared<const CellType>(std::move(values));
  return type;
}

int64_t BuffersOf(CellKind kind) {
  if (kind == CellKind::kNull) return 0;
  return kind == CellKind::kText || kind == CellKind::kLargeText ? 3 : 2;
}

// Takes the buffers of texts that are views: validity, views, any number with long texts, and the
// lengths of those.
Status TakeViewBuffers(const ArrowArray& array, ColumnChunk* chunk) {
  constexpr int64_t kAround = 3, kManyMax = int64_t{1} << 31;
  if (array.n_buffers < kAround || array.n_buffers > kManyMax) {
    return Wrong("it has " + std::to_string(array.n_buffers) + " buffers: expected 3 or more");
  }
  const auto many = static_cast<size_t>(array.n_buffers - kAround);
  const auto* const sizes = static_cast<const char*>(array.buffers[array.n_buffers - 1]);
  if (many > 0 && sizes == nullptr) return Wrong("the lengths of its buffers are missing");
  for (size_t i = 0; i < many; ++i) {
    int64_t size = 0;
    std::memcpy(&size, sizes + i * sizeof(size), sizeof(size));
    const auto* const bytes = static_cast<const char*>(array.buffers[2 + i]);
    if (size < 0 || (size > 0 && bytes == nullptr)) {
      return Wrong("buffer " + std::to_string(2 + i) + " has " + std::to_string(size) +
                   " bytes, or is missing");
    }
    chunk->view_bytes.emplace_back(bytes, static_cast<size_t>(size));
  }
  return {};
}

// Returns `length` cells of an array from its own cell `skipped` on.
Result<ColumnChunk> ChunkOf(const CellType& type, const ArrowArray* array, int64_t skipped,
                            int64_t length);

// Returns all cells of an array.
Result<ColumnChunk> WholeChunkOf(const CellType& type, const ArrowArray* array) {
  if (array == nullptr) return Wrong("its values are missing");
  return ChunkOf(type, array, 0, array->length);
}

Result<ColumnChunk> ChunkOf(const CellType& type, const ArrowArray* array, int64_t skipped,
                            int64_t length) {
  if (array == nullptr || array->release == nullptr) return Wrong("it is missing or was released");
  const auto in_range = [](int64_t n) { return n >= 0 && n <= kCellsMax; };
  if (!in_range(array->length) || !in_range(array->offset) || !in_range(skipped) ||
      !in_range(length) || skipped + length > array->length) {
    return Wrong("it has " + std::to_string(array->length) + " cells from " +
                 std::to_string(array->offset) + " on: expected " + std::to_string(length) +
                 " from " + std::to_string(skipped) + " on");
  }
  ColumnChunk chunk{.first = array->offset + skipped, .length = length, .scale = type.scale};
  if (type.kind == CellKind::kOther || type.kind == CellKind::kNull) return chunk;
  const bool views = type.kind == CellKind::kTextViews;
  if (array->buffers == nullptr || (!views && array->n_buffers != BuffersOf(type.kind))) {
    return Wrong("it has " + std::to_string(array->n_buffers) + " buffers: expected " +
                 std::to_string(BuffersOf(type.kind)));
  }
  if (views) HDPS_RETURN_IF_ERROR(TakeViewBuffers(*array, &chunk));
  if (array->null_count != 0) chunk.validity = static_cast<const uint8_t*>(array->buffers[0]);
  if (array->null_count > 0 && chunk.validity == nullptr) {
    return Wrong(std::to_string(array->null_count) +
                 " of its cells are missing, and the buffer that tells which is missing too");
  }
  chunk.cells = array->buffers[1];
  if (BuffersOf(type.kind) == 3) chunk.bytes = static_cast<const char*>(array->buffers[2]);
  if (type.values == nullptr) return chunk;
  const ArrowArray* values = array->dictionary;
  if (IsList(type.kind)) {
    const bool one = array->n_children == 1 && array->children != nullptr;
    values = one ? array->children[0] : nullptr;
  }
  HDPS_ASSIGN_OR_RETURN(ColumnChunk of_values, WholeChunkOf(*type.values, values));
  chunk.values = std::make_shared<const ColumnChunk>(std::move(of_values));
  return chunk;
}

// Refuses rows that are missing as a whole, which a table does not have.
Status CheckRows(const ArrowArray& batch) {
  if (batch.null_count == 0 || batch.n_buffers < 1 || batch.buffers == nullptr) return {};
  ColumnChunk rows{.first = batch.offset, .length = batch.length};
  rows.validity = static_cast<const uint8_t*>(batch.buffers[0]);
  for (int64_t i = 0; i < rows.length; ++i) {
    if (!HasCell(rows, i)) {
      return Wrong("row " + std::to_string(i) + " is missing as a whole: expected missing cells");
    }
  }
  return {};
}

// Owns what a stream gives, and releases it.
template <typename T>
struct Owned {
  T c = {};
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (c.release != nullptr) c.release(&c);
  }
};

// Lets chunks use the dictionaries of the batch before where these are the same memory, which is
// sound as long as both batches live.
void ShareDictionaries(const std::vector<ColumnTable::Column>& columns, const ColumnTable& before,
                       std::vector<ColumnChunk>* chunks) {
  for (size_t c = 0; c < columns.size(); ++c) {
    // Views have further buffers.
    if (!columns[c].type.is_dictionary()) continue;
    if (columns[c].type.values->kind == CellKind::kTextViews) continue;
    const std::shared_ptr<const ColumnChunk>& there = before.chunk(0, c).values;
    const ColumnChunk& here = *(*chunks)[c].values;
    if (there->first == here.first && there->length == here.length &&
        there->validity == here.validity && there->cells == here.cells &&
        there->bytes == here.bytes) {
      (*chunks)[c].values = there;
    }
  }
}

Status StreamFailed(ArrowArrayStream& stream, int error) {
  const char* const told =
      stream.get_last_error == nullptr ? nullptr : stream.get_last_error(&stream);
  return Wrong("the Arrow stream failed: " +
               EscapeUntrusted(told == nullptr ? std::strerror(error) : told));
}

Result<std::vector<ColumnTable::Column>> ColumnsOf(ArrowArrayStream& stream) {
  Owned<ArrowSchema> schema;
  if (const int error = stream.get_schema(&stream, &schema.c); error != 0) {
    return StreamFailed(stream, error);
  }
  const ArrowSchema& c = schema.c;
  if (c.release == nullptr || c.format == nullptr || std::strcmp(c.format, "+s") != 0 ||
      c.dictionary != nullptr || c.n_children < 0 || (c.n_children > 0 && c.children == nullptr)) {
    return Wrong("the Arrow stream has no columns: expected a table or a stream of record batches");
  }
  std::vector<ColumnTable::Column> columns;
  for (int64_t i = 0; i < c.n_children; ++i) {
    const ArrowSchema* const child = c.children[i];
    const std::string name = child == nullptr || child->name == nullptr ? "" : child->name;
    Result<CellType> type = TypeOf(child, /*outermost=*/true);
    if (!type.ok()) {
      return Wrong("column " + std::to_string(i + 1) +
                   " of the Arrow stream: " + type.status().message());
    }
    columns.push_back({name, *std::move(type)});
  }
  return columns;
}

Result<std::vector<ColumnChunk>> ChunksOf(const std::vector<ColumnTable::Column>& columns,
                                          const ArrowArray& batch) {
  const auto num_columns = static_cast<int64_t>(columns.size());
  if (batch.n_children != num_columns || (num_columns > 0 && batch.children == nullptr)) {
    return Wrong(std::to_string(batch.n_children) + " columns: expected " +
                 std::to_string(num_columns));
  }
  std::vector<ColumnChunk> chunks;
  if (columns.empty()) return chunks;
  for (size_t i = 0; i < columns.size(); ++i) {
    Result<ColumnChunk> chunk =
        ChunkOf(columns[i].type, batch.children[i], batch.offset, batch.length);
    if (!chunk.ok()) {
      return Wrong("column '" + EscapeUntrusted(columns[i].name) +
                   "': " + chunk.status().message());
    }
    chunks.push_back(*std::move(chunk));
  }
  HDPS_RETURN_IF_ERROR(CheckRows(batch));
  return chunks;
}

}  // namespace

struct ColumnStream::Stream : Owned<ArrowArrayStream> {};

ColumnStream::ColumnStream() = default;
ColumnStream::~ColumnStream() = default;

Result<std::unique_ptr<ColumnStream>> ColumnStream::Open(ArrowArrayStream* stream) {
  if (stream == nullptr || stream->release == nullptr) {
    return Wrong("the Arrow stream is empty, or was read before");
  }
  std::unique_ptr<ColumnStream> opened(new ColumnStream());
  opened->stream_ = std::make_unique<Stream>();
  ArrowArrayStream& c = opened->stream_->c;
  std::swap(c, *stream);
  if (c.get_schema == nullptr || c.get_next == nullptr) {
    return Wrong("the Arrow stream lacks its functions");
  }
  HDPS_ASSIGN_OR_RETURN(opened->columns_, ColumnsOf(c));
  return opened;
}

Result<std::shared_ptr<const ColumnTable>> ColumnStream::Next() {
  const auto batch = std::make_shared<Owned<ArrowArray>>();
  if (const int error = stream_->c.get_next(&stream_->c, &batch->c); error != 0) {
    return StreamFailed(stream_->c, error);
  }
  if (batch->c.release == nullptr) return std::shared_ptr<const ColumnTable>();
  std::shared_ptr<ColumnTable> table(new ColumnTable());
  table->columns_ = columns_;
  Result<std::vector<ColumnChunk>> chunks = ChunksOf(columns_, batch->c);
  if (chunks.ok() && last_ != nullptr) ShareDictionaries(columns_, *last_, &*chunks);
  const Status added =
      chunks.ok() ? table->AddBatch(*std::move(chunks), last_.get()) : chunks.status();
  if (!added.ok()) {
    return Wrong("batch " + std::to_string(taken_) + " of the Arrow stream: " + added.message());
  }
  ++taken_;
  if (batch->c.length > 0) {
    table->keeps_.push_back(batch);
    last_ = table;
  }
  return std::shared_ptr<const ColumnTable>(std::move(table));
}

Result<std::unique_ptr<ColumnTable>> ColumnTable::FromStream(ArrowArrayStream* stream) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ColumnStream> batches, ColumnStream::Open(stream));
  std::unique_ptr<ColumnTable> table(new ColumnTable());
  table->columns_ = batches->columns();
  while (true) {
    HDPS_ASSIGN_OR_RETURN(std::shared_ptr<const ColumnTable> batch, batches->Next());
    if (batch == nullptr) return table;
    table->AddBatchesOf(std::move(batch));
  }
}

}  // namespace hdps
