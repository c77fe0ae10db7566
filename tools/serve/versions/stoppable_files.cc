// Asks before each block whether to go on.
#include "tools/serve/versions/stoppable_files.h"

#include <utility>

#include "common/platform/seekable_file.h"

namespace hdps {
namespace {

class ReadFile : public SequentialFile {
 public:
  ReadFile(const StoppableFiles& files, std::string path, std::unique_ptr<SequentialFile> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}
  Result<size_t> Read(std::span<std::byte> buffer) override {
    HDPS_RETURN_IF_ERROR(files_.CheckGoesOn(path_));
    return file_->Read(buffer);
  }

 protected:
  Status CheckGoesOn() const { return files_.CheckGoesOn(path_); }

 private:
  const StoppableFiles& files_;
  const std::string path_;
  const std::unique_ptr<SequentialFile> file_;
};

class AnywhereFile : public ReadFile, public SeekableFile {
 public:
  AnywhereFile(const StoppableFiles& files, const std::string& path,
               std::unique_ptr<SequentialFile> file, SeekableFile& seekable)
      : ReadFile(files, path, std::move(file)), seekable_(seekable) {}
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) override {
    HDPS_RETURN_IF_ERROR(CheckGoesOn());
    return seekable_.ReadAt(offset, buffer);
  }
  void WillRead(uint64_t offset, size_t bytes) override { seekable_.WillRead(offset, bytes); }

 private:
  SeekableFile& seekable_;
};

// A file that can also be mapped, which reads nothing.
class MappableAnywhereFile : public AnywhereFile, public MappableFile {
 public:
  MappableAnywhereFile(const StoppableFiles& files, const std::string& path,
                       std::unique_ptr<SequentialFile> file, SeekableFile& seekable,
                       MappableFile& mappable)
      : AnywhereFile(files, path, std::move(file), seekable), mappable_(mappable) {}
  Result<std::unique_ptr<MappedFile>> Map() override { return mappable_.Map(); }

 private:
  MappableFile& mappable_;
};

class WrittenFile : public WritableFile {
 public:
  WrittenFile(const StoppableFiles& files, std::string path, std::unique_ptr<WritableFile> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}
  Status Append(std::span<const std::byte> bytes) override {
    HDPS_RETURN_IF_ERROR(files_.CheckGoesOn(path_));
    return file_->Append(bytes);
  }
  Status Sync() override {
    HDPS_RETURN_IF_ERROR(files_.CheckGoesOn(path_));
    return file_->Sync();
  }
  Status Close() override { return file_->Close(); }

 private:
  const StoppableFiles& files_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

}  // namespace

Status StoppableFiles::CheckGoesOn(const std::string& path) const {
  if (!stopped()) return {};
  return {Code::kCancelled, path + ": given up between two blocks, because serving ends"};
}

Result<std::unique_ptr<SequentialFile>> StoppableFiles::OpenSequential(const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file,
                        ForwardingFiles::OpenSequential(path));
  auto* const seekable = dynamic_cast<SeekableFile*>(file.get());
  auto* const mappable = dynamic_cast<MappableFile*>(file.get());
  std::unique_ptr<SequentialFile> stoppable;
  if (seekable == nullptr) {
    stoppable = std::make_unique<ReadFile>(*this, path, std::move(file));
  } else if (mappable == nullptr) {
    stoppable = std::make_unique<AnywhereFile>(*this, path, std::move(file), *seekable);
  } else {
    stoppable =
        std::make_unique<MappableAnywhereFile>(*this, path, std::move(file), *seekable, *mappable);
  }
  return stoppable;
}

Result<std::unique_ptr<WritableFile>> StoppableFiles::Create(const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, ForwardingFiles::Create(path));
  return std::unique_ptr<WritableFile>(std::make_unique<WrittenFile>(*this, path, std::move(file)));
}

Result<std::unique_ptr<WritableFile>> StoppableFiles::OpenAppend(const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, ForwardingFiles::OpenAppend(path));
  return std::unique_ptr<WritableFile>(std::make_unique<WrittenFile>(*this, path, std::move(file)));
}

}  // namespace hdps
