// Reads indices with the column readers of Parquet, which lie below those of Arrow.
#include "worker/data/parquet_module/dictionary_column.h"

#include <arrow/memory_pool.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace hdps {
namespace {

using arrow::Buffer;
using arrow::Result;
using arrow::Status;

Result<std::shared_ptr<Buffer>> NewBuffer(int64_t bytes) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateBuffer(bytes, arrow::system_memory_pool()));
  return std::shared_ptr<Buffer>(std::move(buffer));
}

// Copies numbers into an array.
template <typename T>
Result<std::shared_ptr<arrow::Array>> ArrayOf(const T* values, int32_t count,
                                              const std::shared_ptr<arrow::DataType>& type) {
  const int64_t bytes = int64_t{count} * static_cast<int64_t>(sizeof(T));
  ARROW_ASSIGN_OR_RAISE(auto buffer, NewBuffer(bytes));
  if (bytes > 0) std::memcpy(buffer->mutable_data(), values, static_cast<size_t>(bytes));
  return arrow::MakeArray(arrow::ArrayData::Make(type, count, {nullptr, std::move(buffer)}, 0));
}

// Copies texts into an array.
Result<std::shared_ptr<arrow::Array>> ArrayOf(const parquet::ByteArray* values, int32_t count,
                                              const std::shared_ptr<arrow::DataType>& type) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < count; ++i) bytes += values[i].len;
  if (bytes > std::numeric_limits<int32_t>::max()) {
    return Status::Invalid("a dictionary of ", bytes, " bytes");
  }
  ARROW_ASSIGN_OR_RAISE(auto ends, NewBuffer((int64_t{count} + 1) * int64_t{sizeof(int32_t)}));
  ARROW_ASSIGN_OR_RAISE(auto texts, NewBuffer(bytes));
  auto* const end = reinterpret_cast<int32_t*>(ends->mutable_data());
  end[0] = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (values[i].len > 0)
      std::memcpy(texts->mutable_data() + end[i], values[i].ptr, values[i].len);
    end[i + 1] = end[i] + static_cast<int32_t>(values[i].len);
  }
  return arrow::MakeArray(
      arrow::ArrayData::Make(type, count, {nullptr, std::move(ends), std::move(texts)}, 0));
}

template <typename Physical>
class ColumnOf : public DictionaryColumn {
 public:
  using Value = typename Physical::c_type;
  ColumnOf(int leaf, bool optional, const std::shared_ptr<arrow::DataType>& values)
      : DictionaryColumn(leaf, optional, arrow::dictionary(arrow::int32(), values)),
        values_(values) {}

  Status BeginGroup(parquet::RowGroupReader& group) override {
    reader_ = std::dynamic_pointer_cast<parquet::TypedColumnReader<Physical>>(
        group.ColumnWithExposeEncoding(leaf_, parquet::ExposedEncoding::DICTIONARY));
    dictionary_ = nullptr;
    if (reader_ == nullptr ||
        reader_->GetExposedEncoding() != parquet::ExposedEncoding::DICTIONARY) {
      return Status::Invalid("a column chunk is not what the footer tells of it");
    }
    return Status::OK();
  }

  Result<std::shared_ptr<arrow::Array>> Read(int64_t rows) override {
    ARROW_ASSIGN_OR_RAISE(auto indices, NewBuffer(rows * int64_t{sizeof(int32_t)}));
    levels_.resize(static_cast<size_t>(rows));
    dense_.resize(static_cast<size_t>(rows));
    auto* const index = reinterpret_cast<int32_t*>(indices->mutable_data());
    std::shared_ptr<Buffer> valid;
    int64_t missing = 0;
    if (optional_) {
      ARROW_ASSIGN_OR_RAISE(valid, NewBuffer(arrow::bit_util::BytesForBits(rows)));
      std::memset(valid->mutable_data(), 0, static_cast<size_t>(valid->size()));
    }
    for (int64_t read = 0; read < rows;) {
      int64_t got = 0;
      const Value* values = nullptr;
      int32_t count = 0;
      const int64_t levels = reader_->ReadBatchWithDictionary(
          rows - read, levels_.data(), nullptr, optional_ ? dense_.data() : index + read, &got,
          &values, &count);
      if (levels <= 0 || levels > rows - read || (!optional_ && got != levels)) {
        return Status::Invalid("a column has fewer rows than the footer tells");
      }
      if (dictionary_ == nullptr && values != nullptr) {
        ARROW_ASSIGN_OR_RAISE(dictionary_, ArrayOf(values, count, values_));
      }
      if (optional_) missing += Spread(levels, got, read, index + read, valid->mutable_data());
      read += levels;
    }
    if (dictionary_ == nullptr) {
      ARROW_ASSIGN_OR_RAISE(dictionary_, ArrayOf(static_cast<const Value*>(nullptr), 0, values_));
    }
    if (missing == 0) valid = nullptr;
    auto data = arrow::ArrayData::Make(type_, rows, {valid, std::move(indices)}, missing);
    data->dictionary = dictionary_->data();
    return arrow::MakeArray(std::move(data));
  }

 private:
  // Writes an index for each level, 0 for a missing cell, and the bits of cells that are there from
  // bit `begin` on. Returns the number of missing cells.
  int64_t Spread(int64_t levels, int64_t got, int64_t begin, int32_t* index, uint8_t* bits) const {
    int64_t next = 0;
    for (int64_t i = 0; i < levels; ++i) {
      const bool there = levels_[static_cast<size_t>(i)] > 0 && next < got;
      index[i] = there ? dense_[static_cast<size_t>(next)] : 0;
      next += there ? 1 : 0;
      const int64_t bit = begin + i;
      bits[bit / 8] = static_cast<uint8_t>(bits[bit / 8] | static_cast<unsigned>(there) << bit % 8);
    }
    return levels - next;
  }

  const std::shared_ptr<arrow::DataType> values_;
  std::shared_ptr<parquet::TypedColumnReader<Physical>> reader_;  // Of the row group.
  std::shared_ptr<arrow::Array> dictionary_;  // Of the row group; null before its first value.
  std::vector<int16_t> levels_;               // Of the rows that are read: 1 if a cell is there.
  std::vector<int32_t> dense_;                // Indices of those cells.
};

// Is true if all pages with values refer to the dictionary.
bool IsAllDictionary(const parquet::ColumnChunkMetaData& chunk) {
  if (!chunk.has_dictionary_page() || chunk.encoding_stats().empty()) return false;
  return std::ranges::all_of(chunk.encoding_stats(), [](const parquet::PageEncodingStats& page) {
    const bool data = page.page_type == parquet::PageType::DATA_PAGE ||
                      page.page_type == parquet::PageType::DATA_PAGE_V2;
    return !data || page.encoding == parquet::Encoding::PLAIN_DICTIONARY ||
           page.encoding == parquet::Encoding::RLE_DICTIONARY;
  });
}

// Returns the type of the values; null if Arrow reads them as something else than their bytes.
std::shared_ptr<arrow::DataType> ValuesOf(const parquet::ColumnDescriptor& column) {
  const auto& meaning = column.logical_type();
  const bool plain = meaning == nullptr || meaning->is_none();
  switch (column.physical_type()) {
    case parquet::Type::BYTE_ARRAY:
      return plain || meaning->is_string() ? arrow::binary() : nullptr;
    case parquet::Type::INT32:
      return plain ? arrow::int32() : nullptr;
    case parquet::Type::INT64:
      return plain ? arrow::int64() : nullptr;
    case parquet::Type::FLOAT:
      return plain ? arrow::float32() : nullptr;
    case parquet::Type::DOUBLE:
      return plain ? arrow::float64() : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<DictionaryColumn> DictionaryColumn::Make(const parquet::FileMetaData& file,
                                                         int leaf, int first_group, int end_group) {
  const parquet::ColumnDescriptor& column = *file.schema()->Column(leaf);
  const bool flat = file.schema()->GetColumnRoot(leaf)->is_primitive() &&
                    column.max_repetition_level() == 0 && column.max_definition_level() <= 1;
  const std::shared_ptr<arrow::DataType> values = flat ? ValuesOf(column) : nullptr;
  if (values == nullptr) return nullptr;
  for (int group = first_group; group < end_group; ++group) {
    if (!IsAllDictionary(*file.RowGroup(group)->ColumnChunk(leaf))) return nullptr;
  }
  const bool optional = column.max_definition_level() > 0;
  switch (column.physical_type()) {
    case parquet::Type::BYTE_ARRAY:
      return std::make_unique<ColumnOf<parquet::ByteArrayType>>(leaf, optional, values);
    case parquet::Type::INT32:
      return std::make_unique<ColumnOf<parquet::Int32Type>>(leaf, optional, values);
    case parquet::Type::INT64:
      return std::make_unique<ColumnOf<parquet::Int64Type>>(leaf, optional, values);
    case parquet::Type::FLOAT:
      return std::make_unique<ColumnOf<parquet::FloatType>>(leaf, optional, values);
    default:
      return std::make_unique<ColumnOf<parquet::DoubleType>>(leaf, optional, values);
  }
}

}  // namespace hdps
