// Checks files of packed rows, piece by piece at their first use.
#include "worker/data/cache/cached_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/hash.h"
#include "worker/data/cache/row_file.h"

namespace hdps {

CachedRows::CachedRows(std::vector<Block> blocks, uint64_t bytes, std::vector<RowEntry> index,
                       std::string stamp, std::unique_ptr<BudgetShare> share)
    : stamp_(std::move(stamp)),
      num_rows_(index.size()),
      bytes_(bytes + index.size() * sizeof(RowEntry)),
      row_bytes_(bytes),
      blocks_(std::move(blocks)),
      own_index_(std::move(index)),
      share_(std::move(share)) {}

Result<std::shared_ptr<const CachedRows>> CachedRows::Open(FileSystem& files,
                                                           const std::string& path) {
  if (!files.Exists(path)) return Status(Code::kNotFound, path + " does not exist");
  std::shared_ptr<CachedRows> rows(new CachedRows());
  HDPS_ASSIGN_OR_RETURN(rows->file_, MapFile(files, path));
  rows->mapped_ = rows->file_->bytes();
  rows->path_ = path;
  HDPS_RETURN_IF_ERROR(rows->TakeFile());
  return std::shared_ptr<const CachedRows>(std::move(rows));
}

Status CachedRows::TakeFile() {
  const auto wrong = [&](const char* what) { return Status(Code::kCorruption, path_ + what); };
  RowFooter footer;
  if (mapped_.size() < sizeof(footer)) return wrong(" is cut, or no file of parsed rows");
  const std::span<const std::byte> end = mapped_.last(sizeof(footer));
  std::memcpy(&footer, end.data(), sizeof(footer));
  if (footer.magic != RowFooter::kMagic) return wrong(" is cut, or no file of parsed rows");
  if (footer.version != RowFooter::kVersion) {
    return wrong(" was written by another version of this program");
  }
  if (footer.own_hash != HashBytes(end.first(offsetof(RowFooter, own_hash)))) {
    return wrong(" is damaged at its end");
  }
  const uint64_t size = mapped_.size() - sizeof(footer), content = footer.content_bytes;
  const uint64_t pieces = content / kRowBlockBytes + (content % kRowBlockBytes != 0 ? 1 : 0);
  const bool fits =
      content <= size && (size - content) / 8 == pieces && content % 8 == 0 && size % 8 == 0 &&
      footer.index_offset % 8 == 0 && footer.row_bytes <= footer.index_offset &&
      footer.index_offset <= content &&
      footer.rows <= (content - footer.index_offset) / sizeof(RowEntry) &&
      footer.stamp_bytes <= content - footer.index_offset - footer.rows * sizeof(RowEntry);
  if (!fits || HashBytes(mapped_.subspan(content, pieces * 8)) != footer.hashes_hash) {
    return wrong(" is cut, or damaged at its end");
  }
  num_rows_ = footer.rows;
  row_bytes_ = footer.row_bytes;
  content_bytes_ = content;
  const uint64_t index_bytes = num_rows_ * sizeof(RowEntry);
  bytes_ = row_bytes_ + index_bytes;
  in_file_ = mapped_.subspan(footer.index_offset, index_bytes);
  whole_ = std::vector<std::atomic<uint8_t>>(pieces);
  const uint64_t stamp_begin = footer.index_offset + index_bytes;
  for (uint64_t at = stamp_begin; at < stamp_begin + footer.stamp_bytes; ++at) {
    if (!PieceIsWhole(at / kRowBlockBytes)) return wrong(" is damaged");
    at = std::max(at, (at / kRowBlockBytes + 1) * kRowBlockBytes - 1);
  }
  const std::span<const std::byte> stamp = mapped_.subspan(stamp_begin, footer.stamp_bytes);
  stamp_.assign(reinterpret_cast<const char*>(stamp.data()), stamp.size());
  return {};
}

bool CachedRows::PieceIsWhole(uint64_t piece) const {
  if (whole_[piece].load(std::memory_order_relaxed) != 0) return true;
  const uint64_t begin = piece * kRowBlockBytes;
  const uint64_t bytes = std::min(kRowBlockBytes, content_bytes_ - begin);
  uint64_t hash = 0;
  std::memcpy(&hash, mapped_.data() + content_bytes_ + piece * sizeof(hash), sizeof(hash));
  if (HashBytes(mapped_.subspan(begin, bytes)) != hash) return false;
  whole_[piece].store(1, std::memory_order_relaxed);
  return true;
}

bool CachedRows::EntryOf(uint64_t row, RowEntry* entry) const {
  if (file_ == nullptr) {
    *entry = own_index_[row];
    return true;
  }
  const std::byte* const at = in_file_.data() + row * sizeof(*entry);
  if (!PieceIsWhole(static_cast<uint64_t>(at - mapped_.data()) / kRowBlockBytes)) return false;
  std::memcpy(entry, at, sizeof(*entry));
  return entry->offset() < row_bytes_;
}

bool CachedRows::BytesAt(const RowEntry& entry, std::span<const std::byte>* bytes) const {
  const uint64_t offset = entry.offset(), block = offset / kRowBlockBytes;
  if (offset >= row_bytes_ || (file_ != nullptr && !PieceIsWhole(block))) return false;
  const uint64_t begin = block * kRowBlockBytes;
  *bytes = {BlockAt(block) + (offset - begin),
            std::min(begin + kRowBlockBytes, row_bytes_) - offset};
  return true;
}

void CachedRows::Prefetch(const RowEntry& entry, size_t bytes) const {
  constexpr size_t kCacheLineBytes = 64;
  if (entry.offset() >= row_bytes_) return;
  const std::byte* const at =
      BlockAt(entry.offset() / kRowBlockBytes) + entry.offset() % kRowBlockBytes;
  for (size_t i = 0; i < bytes; i += kCacheLineBytes) __builtin_prefetch(at + i);
  // A row seldom begins where a cache line does, so that its end lies in one more.
  __builtin_prefetch(at + bytes);
}

}  // namespace hdps
