// Reads Parquet files by Arrow C++, for programs that load this module when a job needs it.
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "worker/data/parquet_module/row_batches.h"
#include "worker/data/records/parquet_abi.h"

namespace {

using arrow::Result;
using arrow::Status;

// Reads through the functions of the caller.
//
// Invariant: no byte at or beyond bytes_.size is asked for.
class CallersFile : public arrow::io::RandomAccessFile {
 public:
  explicit CallersFile(const HdpsFileBytes& bytes) : bytes_(bytes) {}

  Status Close() override {
    closed_ = true;
    return Status::OK();
  }
  bool closed() const override { return closed_; }
  Result<int64_t> Tell() const override { return position_; }
  Status Seek(int64_t position) override {
    position_ = position;
    return Status::OK();
  }
  Result<int64_t> GetSize() override { return bytes_.size; }
  Result<int64_t> Read(int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(position_, bytes, out));
    position_ += got;
    return got;
  }
  Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
    position_ += buffer->size();
    return buffer;
  }
  Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override {
    if (position < 0 || bytes < 0) return Status::Invalid("a read before the file's begin");
    const int64_t left = std::max<int64_t>(0, bytes_.size - position);
    bytes = std::min(bytes, left);
    int64_t filled = 0;
    while (filled < bytes) {
      const int64_t got = bytes_.read_at(bytes_.file, position + filled, bytes - filled,
                                         static_cast<char*>(out) + filled);
      if (got < 0) return Status::IOError("reading the file failed");
      if (got == 0) break;
      filled += got;
    }
    return filled;
  }
  Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t bytes) override {
    // A damaged footer may ask for more than there is.
    bytes = std::clamp<int64_t>(bytes, 0, std::max<int64_t>(0, bytes_.size - position));
    ARROW_ASSIGN_OR_RAISE(auto buffer,
                          arrow::AllocateResizableBuffer(bytes, arrow::system_memory_pool()));
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(position, bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  const HdpsFileBytes bytes_;
  int64_t position_ = 0;
  bool closed_ = false;
};

Status ReadParquet(const HdpsFileBytes& bytes, const HdpsParquetRead& read, ArrowArrayStream* out) {
  arrow::MemoryPool* const pool = arrow::system_memory_pool();
  parquet::ReaderProperties file_properties(pool);
  // Pages are read one by one, so that memory does not grow with the row groups.
  file_properties.enable_buffered_stream();
  constexpr int64_t kColumnBufferBytes = int64_t{256} << 10;
  file_properties.set_buffer_size(kColumnBufferBytes);
  file_properties.set_page_checksum_verification(true);
  parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_batch_size(read.batch_rows);
  properties.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(std::make_shared<CallersFile>(bytes), file_properties));
  builder.memory_pool(pool)->properties(properties);
  ARROW_ASSIGN_OR_RAISE(auto file, builder.Build());
  const std::shared_ptr<parquet::FileMetaData> metadata = file->parquet_reader()->metadata();
  for (int group = 0; group < metadata->num_row_groups(); ++group) {
    read.on_group(read.context, metadata->RowGroup(group)->num_rows());
  }
  if (read.first_group < 0 || read.end_group > metadata->num_row_groups()) {
    return Status::Invalid("the file has ", metadata->num_row_groups(), " row groups");
  }
  if (read.first_group > read.end_group) return Status::Invalid("no such row groups");
  ARROW_ASSIGN_OR_RAISE(auto batches, hdps::OpenBatches(std::move(file), read));
  return arrow::ExportRecordBatchReader(std::move(batches), out);
}

int Failed(const std::string& why, char* error, int64_t error_bytes) {
  const auto room = static_cast<size_t>(std::max<int64_t>(1, error_bytes)) - 1;
  const size_t size = std::min(why.size(), room);
  std::memcpy(error, why.data(), size);
  error[size] = '\0';
  return 1;
}

}  // namespace

// Its name is kReadParquetName.
extern "C" __attribute__((visibility("default"))) int HdpsReadParquet1(const HdpsFileBytes* file,
                                                                       const HdpsParquetRead* read,
                                                                       ArrowArrayStream* out,
                                                                       char* error,
                                                                       int64_t error_bytes) {
  try {
    const Status status = ReadParquet(*file, *read, out);
    return status.ok() ? 0 : Failed(status.message(), error, error_bytes);
  } catch (const std::exception& thrown) {
    return Failed(thrown.what(), error, error_bytes);
  }
}
