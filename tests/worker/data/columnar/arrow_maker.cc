// Every struct that is exported owns a copy of what it shows, and counts itself.
#include "tests/worker/data/columnar/arrow_maker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace hdps {
namespace {

std::atomic<int64_t> g_exported = 0;

struct Counted {
  Counted() { ++g_exported; }
  ~Counted() { --g_exported; }
};

void ExportSchema(const MadeColumn& column, ArrowSchema* schema);
void ExportArray(const MadeColumn& column, ArrowArray* array);

struct SchemaParts : Counted {
  std::string format, name;
  std::vector<ArrowSchema> children, dictionary;
  std::vector<ArrowSchema*> pointers;
};

struct ArrayParts : Counted {
  std::vector<std::unique_ptr<char[]>> buffers;  // Exactly as long as they should be.
  std::vector<const void*> addresses;
  std::vector<ArrowArray> children, dictionary;
  std::vector<ArrowArray*> pointers;
};

template <typename C, typename Parts>
void Release(C* c) {
  auto* const parts = static_cast<Parts*>(c->private_data);
  for (C& child : parts->children) {
    if (child.release != nullptr) child.release(&child);
  }
  for (C& values : parts->dictionary) {
    if (values.release != nullptr) values.release(&values);
  }
  delete parts;
  c->release = nullptr;
}

void ExportSchema(const MadeColumn& column, ArrowSchema* schema) {
  auto* const parts = new SchemaParts();
  parts->format = column.format;
  parts->name = column.name;
  parts->children.resize(column.children.size());
  for (size_t i = 0; i < column.children.size(); ++i) {
    ExportSchema(column.children[i], &parts->children[i]);
    parts->pointers.push_back(&parts->children[i]);
  }
  parts->dictionary.resize(column.dictionary.size());
  if (!column.dictionary.empty()) ExportSchema(column.dictionary[0], &parts->dictionary[0]);
  *schema = {};
  schema->format = parts->format.c_str();
  schema->name = parts->name.c_str();
  schema->n_children = static_cast<int64_t>(parts->children.size());
  schema->children = parts->pointers.data();
  schema->dictionary = parts->dictionary.empty() ? nullptr : parts->dictionary.data();
  schema->release = Release<ArrowSchema, SchemaParts>;
  schema->private_data = parts;
}

void ExportArray(const MadeColumn& column, ArrowArray* array) {
  auto* const parts = new ArrayParts();
  for (const std::optional<std::string>& buffer : column.buffers) {
    parts->addresses.push_back(nullptr);
    if (!buffer) continue;
    parts->buffers.push_back(std::make_unique<char[]>(buffer->size()));
    std::memcpy(parts->buffers.back().get(), buffer->data(), buffer->size());
    parts->addresses.back() = parts->buffers.back().get();
  }
  parts->children.resize(column.children.size());
  for (size_t i = 0; i < column.children.size(); ++i) {
    ExportArray(column.children[i], &parts->children[i]);
    parts->pointers.push_back(&parts->children[i]);
  }
  parts->dictionary.resize(column.dictionary.size());
  if (!column.dictionary.empty()) ExportArray(column.dictionary[0], &parts->dictionary[0]);
  *array = {};
  array->length = column.length;
  array->null_count = column.null_count;
  array->offset = column.offset;
  array->n_buffers = column.says_buffers.value_or(static_cast<int64_t>(parts->addresses.size()));
  array->n_children = column.says_children.value_or(static_cast<int64_t>(parts->children.size()));
  array->buffers = column.no_buffers ? nullptr : parts->addresses.data();
  array->children = column.no_array_children ? nullptr : parts->pointers.data();
  const bool has_values = !parts->dictionary.empty() && !column.no_array_dictionary;
  array->dictionary = has_values ? parts->dictionary.data() : nullptr;
  array->private_data = parts;
  array->release = Release<ArrowArray, ArrayParts>;
  if (column.released) array->release(array);
}

struct StreamParts : Counted {
  MadeStream made;
  size_t next = 0;
};

MadeColumn RowsOf(std::vector<MadeColumn> columns, const MadeStream& made) {
  MadeColumn rows{made.schema_format, ""};
  rows.length = columns.empty() ? 0 : columns[0].length - made.row_offset;
  rows.offset = made.row_offset;
  rows.buffers = {std::nullopt};
  rows.children = std::move(columns);
  return rows;
}

StreamParts& PartsOf(ArrowArrayStream* stream) {
  return *static_cast<StreamParts*>(stream->private_data);
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  const MadeStream& made = PartsOf(stream).made;
  if (made.batches.empty()) return EINVAL;
  ExportSchema(RowsOf(made.batches[0], made), out);
  return 0;
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  StreamParts& parts = PartsOf(stream);
  *out = {};
  if (parts.made.fails_at == static_cast<int>(parts.next)) return EIO;
  if (parts.next == parts.made.batches.size()) return 0;
  ExportArray(RowsOf(parts.made.batches[parts.next++], parts.made), out);
  return 0;
}

const char* GetLastError(ArrowArrayStream* stream) {
  return PartsOf(stream).made.fails_silently ? nullptr : "the cable is unplugged";
}

void ReleaseStream(ArrowArrayStream* stream) {
  delete &PartsOf(stream);
  stream->release = nullptr;
}

}  // namespace

int64_t ExportedNow() { return g_exported; }

std::string ValidityOf(const std::vector<bool>& valid) {
  std::string bits((valid.size() + 7) / 8, '\0');
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
  }
  return bits;
}

void SetValidity(const std::vector<bool>& valid, MadeColumn* column) {
  column->null_count = 0;
  for (const bool there : valid) column->null_count += there ? 0 : 1;
  if (column->null_count > 0) column->buffers[0] = ValidityOf(valid);
}

MadeColumn Bools(const std::string& name, const std::vector<std::optional<bool>>& cells) {
  MadeColumn column{"b", name, static_cast<int64_t>(cells.size())};
  std::vector<bool> values, valid;
  for (const std::optional<bool>& cell : cells) {
    values.push_back(cell.value_or(true));
    valid.push_back(cell.has_value());
  }
  column.buffers = {std::nullopt, ValidityOf(values)};
  SetValidity(valid, &column);
  return column;
}

MadeColumn Texts(const std::string& name, const Cells& cells, const std::string& format) {
  MadeColumn column{format, name, static_cast<int64_t>(cells.size())};
  std::string bytes, views;
  std::vector<int32_t> offsets = {0};
  std::vector<int64_t> large_offsets = {0};
  std::vector<bool> valid;
  for (const std::optional<std::string>& cell : cells) {
    const std::string text = cell.value_or("");
    const std::vector<int32_t> view = {static_cast<int32_t>(text.size()), 0, 0,
                                       static_cast<int32_t>(bytes.size())};
    constexpr size_t kInline = 12;
    views += text.size() > kInline
                 ? BytesOf(view)
                 : BytesOf<int32_t>({view[0]}) + text + std::string(kInline - text.size(), '\0');
    bytes += text;
    offsets.push_back(static_cast<int32_t>(bytes.size()));
    large_offsets.push_back(static_cast<int64_t>(bytes.size()));
    valid.push_back(cell.has_value());
  }
  if (format[0] == 'v') {
    column.buffers = {std::nullopt, views, bytes,
                      BytesOf<int64_t>({static_cast<int64_t>(bytes.size())})};
  } else {
    const bool large = format == "U" || format == "Z";
    column.buffers = {std::nullopt, large ? BytesOf(large_offsets) : BytesOf(offsets), bytes};
  }
  SetValidity(valid, &column);
  return column;
}

MadeColumn Lists(const std::string& name, const std::vector<std::optional<int>>& lengths,
                 MadeColumn items, const std::string& format) {
  MadeColumn column{format, name, static_cast<int64_t>(lengths.size())};
  std::vector<int32_t> offsets = {0};
  std::vector<int64_t> large_offsets = {0};
  std::vector<bool> valid;
  for (const std::optional<int>& length : lengths) {
    offsets.push_back(offsets.back() + length.value_or(0));
    large_offsets.push_back(offsets.back());
    valid.push_back(length.has_value());
  }
  column.buffers = {std::nullopt, format == "+L" ? BytesOf(large_offsets) : BytesOf(offsets)};
  column.children.push_back(std::move(items));
  SetValidity(valid, &column);
  return column;
}

MadeColumn Nulls(const std::string& name, int64_t length) {
  return {.format = "n", .name = name, .length = length, .null_count = length};
}

MadeColumn Sliced(MadeColumn column, int64_t before) {
  column.offset += before;
  column.length -= before;
  if (column.null_count > 0) column.null_count = -1;
  return column;
}

void Export(MadeStream made, ArrowArrayStream* stream) {
  auto* const parts = new StreamParts();
  parts->made = std::move(made);
  *stream = {GetSchema, GetNext, GetLastError, ReleaseStream, parts};
}

Result<std::unique_ptr<ColumnTable>> TableFrom(MadeStream made) {
  ArrowArrayStream stream;
  Export(std::move(made), &stream);
  Result<std::unique_ptr<ColumnTable>> table = ColumnTable::FromStream(&stream);
  EXPECT_EQ(stream.release, nullptr);
  return table;
}

std::shared_ptr<const ColumnTable> MadeTable(MadeBatches batches) {
  Result<std::unique_ptr<ColumnTable>> table = TableFrom({std::move(batches)});
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? std::shared_ptr<const ColumnTable>(*std::move(table)) : nullptr;
}

}  // namespace hdps
