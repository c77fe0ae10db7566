// Makes row numbers as if they were read from a file.
#include "worker/data/columnar/table_files.h"

#include <algorithm>
#include <span>

#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

// Invariant: the bytes before position_ were given.
class RowNumbers : public UnpackedFile {
 public:
  explicit RowNumbers(uint64_t num_rows) : end_(num_rows * kRowNumberBytes) {}

  Result<size_t> Read(std::span<std::byte> to) override {
    size_t filled = 0;
    while (filled < to.size() && position_ < end_) {
      const uint64_t row = position_ / kRowNumberBytes;
      const size_t skipped = position_ % kRowNumberBytes;
      const size_t count = std::min(to.size() - filled, kRowNumberBytes - skipped);
      std::memcpy(to.data() + filled, LineOfRow(row).data() + skipped, count);
      filled += count;
      position_ += count;
    }
    return filled;
  }
  uint64_t packed_bytes_read() const override { return position_; }
  bool seekable() const override { return false; }

 private:
  const uint64_t end_;
  uint64_t position_ = 0;
};

}  // namespace

std::shared_ptr<const ColumnTable> TableOf(const DataSpec& data,
                                           const std::vector<std::string>& paths) {
  if (paths.size() != 1) return nullptr;
  const auto found = data.tables.find(paths[0]);
  return found == data.tables.end() ? nullptr : found->second;
}

Status CheckTable(const DataSpec& data, const std::vector<std::string>& paths) {
  const auto table =
      std::ranges::find_if(paths, [&](const auto& path) { return data.tables.contains(path); });
  if (table == paths.end()) return {};
  if (paths.size() > 1) {
    return {Code::kInvalidArgument, "'" + *table + "' is a table, and stands beside " +
                                        std::to_string(paths.size() - 1) +
                                        " other paths: expected it alone"};
  }
  if (HasNamedColumns(data.format)) return {};
  return {Code::kInvalidArgument, "'" + *table + "' is a table, and data.format is " +
                                      std::string(WordOf(data.format)) +
                                      ": expected csv, whose columns have names"};
}

Result<uint64_t> DataBytes(FileSystem& files, const DataSpec& data, const std::string& path) {
  const std::shared_ptr<const ColumnTable> table = TableOf(data, {path});
  if (table != nullptr) return table->num_rows() * kRowNumberBytes;
  return files.FileSize(path);
}

std::string TableRowPlace(const std::string& path, uint64_t row) {
  return path + " row " + std::to_string(row);
}

std::unique_ptr<UnpackedFile> OpenRowNumbers(uint64_t num_rows) {
  return std::make_unique<RowNumbers>(num_rows);
}

}  // namespace hdps
