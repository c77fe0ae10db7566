// Lets the module read a file of this process's FileSystem.
#include "worker/data/records/parquet_source.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/outside_text.h"
#include "common/platform/seekable_file.h"
#include "worker/data/records/parquet_loader.h"

namespace hdps {
namespace {

constexpr std::string_view kMagic = "PAR1", kEncryptedMagic = "PARE";

Status Wrong(const std::string& path, const std::string& what) {
  return {Code::kInvalidArgument, path + ": " + what};
}

}  // namespace

// The file that the module reads.
//
// Invariant: failed() is the first error of reading.
class ParquetSource::File {
 public:
  static Result<std::unique_ptr<File>> Open(FileSystem& files, const std::string& path) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t size, files.FileSize(path));
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file, files.OpenSequential(path));
    auto* const seekable = dynamic_cast<SeekableFile*>(file.get());
    if (seekable == nullptr) {
      return Wrong(path,
                   "a Parquet file is read at its end first, which a pipe does not allow: "
                   "expected a file");
    }
    return std::unique_ptr<File>(new File(std::move(file), *seekable, size));
  }

  const HdpsFileBytes& bytes() const { return bytes_; }
  const Status& failed() const { return failed_; }
  uint64_t size() const { return static_cast<uint64_t>(bytes_.size); }

  // Returns the text of up to 4 bytes at the offset.
  std::string MagicAt(uint64_t offset) {
    std::array<char, kMagic.size()> text = {};
    const int64_t got = ReadAt(this, static_cast<int64_t>(offset), text.size(), text.data());
    return {text.data(), static_cast<size_t>(std::max<int64_t>(0, got))};
  }

  // Refuses what is no whole Parquet file before the module sees it.
  Status CheckEnds(const std::string& path) {
    // Behind the magic bytes come the rows, the footer, 4 bytes with its length, and the same
    // again.
    constexpr uint64_t kBytesMin = 12;
    const std::string begin = MagicAt(0);
    HDPS_RETURN_IF_ERROR(failed_);
    if (begin == kEncryptedMagic) {
      return Wrong(path,
                   "this Parquet file is encrypted: expected one that is not; hdps has no keys of "
                   "files");
    }
    if (begin != kMagic) {
      return Wrong(path,
                   "this is no Parquet file: its first bytes are '" + EscapeUntrusted(begin) +
                       "', expected 'PAR1', as data.format is parquet for all files of a job");
    }
    const std::string end = size() < kBytesMin ? "" : MagicAt(size() - kMagic.size());
    HDPS_RETURN_IF_ERROR(failed_);
    if (end == kMagic) return {};
    return Wrong(path,
                 "this Parquet file is cut off: its last bytes are not 'PAR1'; expected a whole "
                 "one, copy or write it again");
  }

 private:
  File(std::unique_ptr<SequentialFile> file, SeekableFile& seekable, uint64_t size)
      : file_(std::move(file)),
        seekable_(seekable),
        bytes_{this, static_cast<int64_t>(size), ReadAt} {}

  static int64_t ReadAt(void* self, int64_t offset, int64_t bytes, void* to) {
    auto& file = *static_cast<File*>(self);
    const Result<size_t> got = file.seekable_.ReadAt(
        static_cast<uint64_t>(offset), {static_cast<std::byte*>(to), static_cast<size_t>(bytes)});
    if (got.ok()) return static_cast<int64_t>(*got);
    if (file.failed_.ok()) file.failed_ = got.status();
    return -1;
  }

  const std::unique_ptr<SequentialFile> file_;
  SeekableFile& seekable_;
  const HdpsFileBytes bytes_;
  Status failed_;
};

ParquetSource::ParquetSource(const std::string& path, std::unique_ptr<File> file,
                             HdpsReadParquetFunction* read)
    : path_(path), file_(std::move(file)), read_(read) {}

ParquetSource::~ParquetSource() = default;

uint64_t ParquetSource::bytes() const { return file_->size(); }
const Status& ParquetSource::failed() const { return file_->failed(); }

Result<std::unique_ptr<ParquetSource>> ParquetSource::Open(FileSystem& files,
                                                           const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(HdpsReadParquetFunction* const read, LoadParquetReader());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<File> file, File::Open(files, path));
  HDPS_RETURN_IF_ERROR(file->CheckEnds(path));
  std::unique_ptr<ParquetSource> source(new ParquetSource(path, std::move(file), read));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ColumnStream> types, source->Stream({}, 1, 0));
  source->columns_ = types->columns();
  for (const uint64_t rows : source->group_rows_) source->num_rows_ += rows;
  return source;
}

Result<std::unique_ptr<ColumnStream>> ParquetSource::Rows(const std::vector<int32_t>& columns,
                                                          int64_t batch_rows) {
  return Stream(columns, batch_rows, static_cast<int32_t>(group_rows_.size()));
}

Result<std::unique_ptr<ColumnStream>> ParquetSource::Stream(const std::vector<int32_t>& columns,
                                                            int64_t batch_rows, int32_t end_group) {
  const auto on_group = [](void* context, int64_t rows) {
    const auto of_group = static_cast<uint64_t>(std::max<int64_t>(0, rows));
    static_cast<std::vector<uint64_t>*>(context)->push_back(of_group);
  };
  std::vector<uint64_t> group_rows;
  const HdpsParquetRead read{.columns = columns.empty() ? nullptr : columns.data(),
                             .num_columns = static_cast<int64_t>(columns.size()),
                             .first_group = 0,
                             .end_group = end_group,
                             .batch_rows = batch_rows,
                             .on_group = on_group,
                             .context = &group_rows};
  std::array<char, 1000> why = {};
  ArrowArrayStream stream = {};
  if (read_(&file_->bytes(), &read, &stream, why.data(), why.size()) != 0) {
    HDPS_RETURN_IF_ERROR(file_->failed());
    const std::string_view text(why.data());
    return Wrong(path_, (TellsOfEncryption(text)
                             ? "this Parquet file is encrypted: expected one that is not ("
                             : "this Parquet file cannot be read: expected a whole one (") +
                            EscapeUntrusted(text) + ")");
  }
  Result<std::unique_ptr<ColumnStream>> opened = ColumnStream::Open(&stream);
  if (!opened.ok()) return Wrong(path_, opened.status().message());
  group_rows_ = std::move(group_rows);
  return opened;
}

bool TellsOfEncryption(std::string_view why) { return why.find("crypt") != why.npos; }

bool IsParquet(FileSystem& files, const std::string& path) {
  const Result<std::unique_ptr<SequentialFile>> file = files.OpenSequential(path);
  // A pipe is not looked at, because what is read of it is gone.
  auto* const seekable = file.ok() ? dynamic_cast<SeekableFile*>(file->get()) : nullptr;
  if (seekable == nullptr) return false;
  std::array<char, kMagic.size()> magic = {};
  const Result<size_t> got = seekable->ReadAt(0, std::as_writable_bytes(std::span(magic)));
  const std::string_view text(magic.data(), got.ok() ? *got : 0);
  return text == kMagic || text == kEncryptedMagic;
}

}  // namespace hdps
