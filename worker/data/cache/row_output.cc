// Hashes and writes each block by a thread of the executor, or by the one that hands over the next.
#include "worker/data/cache/row_output.h"

#include <algorithm>
#include <utility>

#include "common/platform/output_file.h"

namespace hdps {

Result<std::shared_ptr<RowOutput>> RowOutput::Create(FileSystem& files, const std::string& path,
                                                     const std::string& holder,
                                                     Executor* executor) {
  std::shared_ptr<RowOutput> made(new RowOutput());
  made->executor_ = executor;
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) {
    HDPS_RETURN_IF_ERROR(files.MakeDirectoriesUnsynced(path.substr(0, slash)));
  }
  HDPS_ASSIGN_OR_RETURN(made->lock_, files.Lock(path + ".lock", holder));
  HDPS_ASSIGN_OR_RETURN(made->file_, ReplaceAtomically(files, path, Survives::kProcess));
  return made;
}

Status RowOutput::Hand(CachedRows::Block* block) {
  HDPS_RETURN_IF_ERROR(Settle());
  std::swap(block_, *block);
  if (*block == nullptr) *block = NewPageBlock(kRowBlockBytes);
  {
    MutexLock lock(mutex_);
    waiting_ = true;
  }
  // The thread may be busy with something that takes long. Then the block is written by the thread
  // that calls next, and the work below finds none.
  if (executor_ != nullptr)
    executor_->Submit([self = shared_from_this()] { self->WriteWaiting(); });
  return {};
}

void RowOutput::WriteWaiting() {
  {
    MutexLock lock(mutex_);
    if (!waiting_) return;
    waiting_ = false;
    writing_ = true;
  }
  const Status written = Append({block_.get(), kRowBlockBytes});
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (status_.ok()) status_ = written;
  }
  changed_.notify_all();
}

Status RowOutput::Settle() {
  WriteWaiting();
  MutexLock lock(mutex_);
  while (writing_) changed_.wait(mutex_);
  return status_;
}

Status RowOutput::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t part = std::min<size_t>(bytes.size(), kRowBlockBytes - bytes_ % kRowBlockBytes);
    piece_->Append(bytes.first(part));
    HDPS_RETURN_IF_ERROR(file_->Append(bytes.first(part)));
    bytes_ += part;
    bytes = bytes.subspan(part);
    if (bytes_ % kRowBlockBytes == 0) EndPiece();
  }
  return {};
}

Status RowOutput::Align() {
  constexpr std::byte kZeros[8] = {};
  return Append(std::span(kZeros).first((8 - bytes_ % 8) % 8));
}

void RowOutput::EndPiece() {
  hashes_.push_back(piece_->Value());
  piece_ = std::make_unique<HashStream>();
}

Status RowOutput::Finish(std::span<const std::byte> last_rows, std::span<const RowEntry> index,
                         const std::string& stamp) {
  HDPS_RETURN_IF_ERROR(Settle());
  HDPS_RETURN_IF_ERROR(Append(last_rows));
  RowFooter footer;
  footer.rows = index.size();
  footer.row_bytes = bytes_;
  HDPS_RETURN_IF_ERROR(Align());
  footer.index_offset = bytes_;
  HDPS_RETURN_IF_ERROR(Append(std::as_bytes(index)));
  footer.stamp_bytes = stamp.size();
  HDPS_RETURN_IF_ERROR(Append(std::as_bytes(std::span<const char>(stamp))));
  HDPS_RETURN_IF_ERROR(Align());
  footer.content_bytes = bytes_;
  if (bytes_ % kRowBlockBytes != 0) EndPiece();
  const std::span<const std::byte> hashes = std::as_bytes(std::span(hashes_));
  footer.hashes_hash = HashBytes(hashes);
  const std::span<const std::byte> end = std::as_bytes(std::span(&footer, 1));
  footer.own_hash = HashBytes(end.first(offsetof(RowFooter, own_hash)));
  HDPS_RETURN_IF_ERROR(file_->Append(hashes));
  HDPS_RETURN_IF_ERROR(file_->Append(end));
  HDPS_RETURN_IF_ERROR(file_->Close());
  GiveUp();
  return {};
}

void RowOutput::GiveUp() {
  {
    MutexLock lock(mutex_);
    waiting_ = false;
    while (writing_) changed_.wait(mutex_);
  }
  file_.reset();
  lock_.reset();
}

}  // namespace hdps
