// Reads files of a log, and looks at the folder where a reader would have to wait.
#include "worker/data/follow/followed_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/job/data_paths.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/seekable_file.h"

namespace hdps {
namespace {

Status Broken(const std::string& what) {
  return {Code::kCorruption, "data.follow: " + what +
                                 "; rows that were read cannot be found again: begin a new job on "
                                 "the log as it is, or put the file back"};
}

std::string Bytes(uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace

// Reads a file that may have more bytes later. It is opened anew before each attempt at new bytes,
// so that a network file system asks its server.
class FollowedLog::GrowingFile : public UnpackedFile {
 public:
  GrowingFile(FollowedLog& log, size_t index, std::function<std::string()> place)
      : log_(log), index_(index), place_(std::move(place)) {}

  Result<size_t> Read(std::span<std::byte> buffer) override {
    uint64_t& read = log_.seen_[index_].bytes;
    for (bool complete = false;;) {
      HDPS_ASSIGN_OR_RETURN(const size_t got, ReadHere(read, buffer));
      read += got;
      if (got > 0) {
        log_.EndWait();
        return got;
      }
      if (complete) {
        log_.seen_[index_].whole = true;
        log_.EndWait();
        return size_t{0};
      }
      HDPS_RETURN_IF_ERROR(log_.Look());
      file_.reset();
      // What came before the next file, or before the marker, is still read.
      complete = log_.IsComplete(index_);
      if (complete) continue;
      HDPS_ASSIGN_OR_RETURN(const uint64_t now, log_.files_.FileSize(log_.paths_[index_]));
      if (now == read) HDPS_RETURN_IF_ERROR(log_.Wait(place_()));
    }
  }
  uint64_t packed_bytes_read() const override { return log_.seen_[index_].bytes; }
  bool seekable() const override { return false; }

 private:
  Result<size_t> ReadHere(uint64_t offset, std::span<std::byte> buffer) {
    if (file_ == nullptr) {
      HDPS_ASSIGN_OR_RETURN(file_, log_.files_.OpenSequential(log_.paths_[index_]));
    }
    auto* const seekable = dynamic_cast<SeekableFile*>(file_.get());
    if (seekable == nullptr) {
      return Status(Code::kInvalidArgument,
                    "data.follow: " + log_.paths_[index_] +
                        " cannot be read at any place, as a pipe cannot: expected a file");
    }
    return seekable->ReadAt(offset, buffer);
  }

  FollowedLog& log_;
  const size_t index_;
  const std::function<std::string()> place_;
  std::unique_ptr<SequentialFile> file_;  // Null: to be opened.
};

FollowedLog::FollowedLog(FileSystem& files, const DataSpec& data,
                         std::shared_ptr<RecordFiles> records, std::shared_ptr<RowWait> wait)
    : files_(files), data_(data), records_(std::move(records)), wait_(std::move(wait)) {}

FollowedLog::~FollowedLog() = default;

void FollowedLog::Restart() {
  paths_.clear();
  seen_.clear();
  ended_ = false;
}

Status FollowedLog::Wait(const std::string& behind) {
  waits_ = true;
  if (wait_->Wait(behind.empty() ? data_.train[0] : behind)) return {};
  EndWait();
  return {Code::kCancelled, "the log is not followed any more"};
}

void FollowedLog::EndWait() {
  if (std::exchange(waits_, false)) wait_->End();
}

Status FollowedLog::Look() {
  // The marker is looked for first: files that came before it are then seen.
  const std::string marker = EndMarkerOf(files_, data_);
  const bool ended = !marker.empty() && files_.Exists(marker);
  HDPS_ASSIGN_OR_RETURN(std::vector<std::string> now, FollowedFilesOf(files_, data_));
  HDPS_RETURN_IF_ERROR(CompareNames(now));
  paths_ = std::move(now);
  ended_ = ended;
  // The newest file that was opened, and the one before it, which was complete when the newest was
  // there: a writer that is late shows in these.
  for (size_t i = seen_.size() < 2 ? 0 : seen_.size() - 2; i < seen_.size(); ++i) {
    HDPS_RETURN_IF_ERROR(CheckFile(i));
  }
  return {};
}

Status FollowedLog::CompareNames(const std::vector<std::string>& now) const {
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (i < now.size() && now[i] == paths_[i]) continue;
    if (i >= now.size() || now[i] > paths_[i]) return Broken(paths_[i] + " is gone");
    return {Code::kInvalidArgument,
            "data.follow: " + now[i] + " has come after " + paths_.back() +
                ", and stands before it by its name, so its rows would come too late: expected "
                "names that grow, as from the time; rename it to one behind " +
                paths_.back()};
  }
  return {};
}

Status FollowedLog::CheckFile(size_t index) const {
  const Seen& seen = seen_[index];
  const std::string& path = paths_[index];
  const Result<FileIdentity> identity = IdentityOf(files_, path);
  if (seen.identity && identity.ok() && !(*identity == *seen.identity)) {
    return Broken(path + " is another file now, of the same name");
  }
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files_.FileSize(path));
  if (bytes < seen.bytes) {
    return Broken(path + " has " + Bytes(bytes) + ", and " + Bytes(seen.bytes) +
                  " were read of it");
  }
  if (seen.whole && bytes > seen.bytes) {
    return {
        Code::kCorruption,
        "data.follow: " + path + " has grown from " + Bytes(seen.bytes) + " to " + Bytes(bytes) +
            " after it was read whole: expected that only the newest file grows, and only if it is "
            "text; write others under a name that ends in .tmp, and rename them when they "
            "are whole"};
  }
  return {};
}

Result<bool> FollowedLog::IsPacked(size_t index, const std::function<std::string()>& place) {
  // The first two bytes of both, which no text has.
  constexpr std::array<std::byte, 2> kGzip = {std::byte{0x1f}, std::byte{0x8b}};
  constexpr std::array<std::byte, 2> kZstd = {std::byte{0x28}, std::byte{0xb5}};
  const std::string& path = paths_[index];
  if (path.ends_with(".gz") || path.ends_with(".zst")) return true;
  GrowingFile file(*this, index, place);
  std::array<std::byte, 2> front = {};
  size_t filled = 0;
  while (filled < front.size()) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, file.Read(std::span(front).subspan(filled)));
    if (got == 0) break;
    filled += got;
  }
  seen_[index].bytes = 0;
  seen_[index].whole = false;
  return front == kGzip || front == kZstd;
}

Result<std::unique_ptr<UnpackedFile>> FollowedLog::Open(size_t index,
                                                        std::function<std::string()> place) {
  if (index >= paths_.size()) HDPS_RETURN_IF_ERROR(Look());
  while (index >= paths_.size()) {
    if (ended_) return std::unique_ptr<UnpackedFile>();
    HDPS_RETURN_IF_ERROR(Wait(place()));
    HDPS_RETURN_IF_ERROR(Look());
  }
  const Result<FileIdentity> identity = IdentityOf(files_, paths_[index]);
  seen_.resize(index);
  seen_.emplace_back();
  if (identity.ok()) seen_[index].identity = *identity;
  bool packed = false;
  if (records_ == nullptr) {
    HDPS_ASSIGN_OR_RETURN(packed, IsPacked(index, place));
    if (!packed) {
      return std::unique_ptr<UnpackedFile>(
          std::make_unique<GrowingFile>(*this, index, std::move(place)));
    }
  }
  return OpenWhole(index);
}

Result<std::unique_ptr<UnpackedFile>> FollowedLog::OpenWhole(size_t index) {
  const std::string& path = paths_[index];
  if (path == data_.train[0]) {
    return Status(Code::kInvalidArgument,
                  "data.follow: " + path +
                      " is packed or has records, so no rows can come behind it: expected a text "
                      "file that grows, or the folder in which such files appear");
  }
  HDPS_ASSIGN_OR_RETURN(seen_[index].bytes, files_.FileSize(path));
  seen_[index].whole = true;
  if (records_ != nullptr) return records_->Open(files_, path);
  return OpenUnpacked(files_, path);
}

}  // namespace hdps
