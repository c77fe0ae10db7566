// Tracks which bytes and names are durable.
#include "tests/sim/disk.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace hdps::sim {
namespace {

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;

}  // namespace

// ---- SimDisk.

void SimDisk::Written(uint64_t machine, const std::string& path, uint64_t durable_bytes) {
  unsynced_.try_emplace(path, Unsynced{machine, durable_bytes});
}

void SimDisk::Renamed(const std::string& from, const std::string& to, bool synced) {
  unsynced_.erase(to);
  if (auto moved = unsynced_.extract(from); !moved.empty()) {
    moved.key() = to;
    unsynced_.insert(std::move(moved));
  }
  if (!synced) return names_.push_back({from, to});
  std::erase_if(names_, [&](const Name& name) { return FolderOf(name.to) == FolderOf(to); });
}

void SimDisk::Removed(const std::string& path) {
  const auto is_in = [&](const std::string& name) {
    return name == path || name.starts_with(path + '/');
  };
  std::erase_if(unsynced_, [&](const auto& file) { return is_in(file.first); });
  std::erase_if(names_, [&](const Name& name) { return is_in(name.to); });
}

void SimDisk::LosePower(uint64_t machine, bool disk_too, Random* random) {
  while (disk_too && !names_.empty()) {
    const Name name = std::move(names_.back());  // The newest first.
    names_.pop_back();
    if (random->Below(2) == 0 || !files_->Exists(name.to)) continue;
    CHECK(files_->Rename(name.to, name.from).ok());
    Renamed(name.to, name.from, true);
  }
  for (const auto& [path, file] : std::map(unsynced_)) {
    if (file.machine != machine) continue;
    const Result<uint64_t> size = files_->FileSize(path);
    if (size.ok()) Cut(path, file.durable_bytes + random->Below(*size - file.durable_bytes + 1));
    unsynced_.erase(path);
  }
}

void SimDisk::Cut(const std::string& path, uint64_t bytes) {
  const Result<std::string> text = ReadWholeFile(*files_, path, kFileBytesMax);
  CHECK(text.ok()) << text.status().message();
  Result<std::unique_ptr<WritableFile>> file = files_->Create(path);
  CHECK(file.ok()) << file.status().message();
  CHECK((*file)->Append(std::as_bytes(std::span(*text).first(bytes))).ok());
  CHECK((*file)->Close().ok());
}

// ---- ProcessFiles.

class ProcessFiles::Writer : public WritableFile {
 public:
  Writer(ProcessFiles* files, std::string path, std::unique_ptr<WritableFile> file)
      : files_(*files), path_(std::move(path)), file_(std::move(file)) {}
  Status Append(std::span<const std::byte> bytes) override {
    HDPS_RETURN_IF_ERROR(files_.BeforeChange());
    const Result<uint64_t> size = files_.disk_.files().FileSize(path_);
    files_.disk_.Written(files_.machine_, path_, size.ok() ? *size : 0);
    return file_->Append(bytes);
  }
  Status Sync() override {
    HDPS_RETURN_IF_ERROR(files_.BeforeChange());
    HDPS_RETURN_IF_ERROR(file_->Sync());
    files_.disk_.Synced(path_);
    return {};
  }
  Status Close() override { return file_->Close(); }

 private:
  ProcessFiles& files_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

Status ProcessFiles::BeforeChange() {
  if (dying_) {
    if (changes_left_ == 0) return {Code::kIoError, "the process has died"};
    --changes_left_;
    return {};
  }
  return before_change_();
}

Result<std::unique_ptr<WritableFile>> ProcessFiles::Create(const std::string& path) {
  HDPS_RETURN_IF_ERROR(BeforeChange());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, disk_.files().Create(path));
  disk_.Removed(path);
  disk_.Written(machine_, path, 0);
  return std::unique_ptr<WritableFile>(std::make_unique<Writer>(this, path, std::move(file)));
}

Result<std::unique_ptr<WritableFile>> ProcessFiles::OpenAppend(const std::string& path) {
  HDPS_RETURN_IF_ERROR(BeforeChange());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, disk_.files().OpenAppend(path));
  return std::unique_ptr<WritableFile>(std::make_unique<Writer>(this, path, std::move(file)));
}

Status ProcessFiles::MakeDirectories(const std::string& path) {
  HDPS_RETURN_IF_ERROR(BeforeChange());
  return disk_.files().MakeDirectories(path);
}

Status ProcessFiles::Rename(const std::string& from, const std::string& to) {
  HDPS_RETURN_IF_ERROR(BeforeChange());
  HDPS_RETURN_IF_ERROR(disk_.files().Rename(from, to));
  disk_.Renamed(from, to, true);
  return {};
}

Status ProcessFiles::RenameUnsynced(const std::string& from, const std::string& to) {
  HDPS_RETURN_IF_ERROR(BeforeChange());
  HDPS_RETURN_IF_ERROR(disk_.files().RenameUnsynced(from, to));
  disk_.Renamed(from, to, false);
  return {};
}

Status ProcessFiles::RemoveAll(const std::string& path) {
  HDPS_RETURN_IF_ERROR(BeforeChange());
  HDPS_RETURN_IF_ERROR(disk_.files().RemoveAll(path));
  disk_.Removed(path);
  return {};
}

// ---- LateExecutor.

void LateExecutor::ParallelFor(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = 0; i < count; ++i) body(i);
}

void LateExecutor::Submit(std::function<void()> work) {
  const TimeMs late = late_();
  if (late <= 0 && work_.empty()) return work();
  work_.push_back({now_ + late, std::move(work)});
}

void LateExecutor::RunDue(TimeMs now) {
  now_ = now;
  while (!work_.empty() && work_.front().at <= now) {
    const Work work = std::move(work_.front());
    work_.pop_front();
    work.run();
  }
}

void LateExecutor::Finish() {
  while (!work_.empty()) {
    const Work work = std::move(work_.front());
    work_.pop_front();
    work.run();
  }
}

}  // namespace hdps::sim
