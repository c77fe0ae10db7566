// Files that count the blocks which are read and written, and tell to stop at one of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "common/platform/forwarding_files.h"
#include "common/platform/seekable_file.h"

namespace hdps {

// For use by one thread. Requires: files can be read at any offset, as those in memory.
class CountedFiles : public ForwardingFiles {
 public:
  explicit CountedFiles(FileSystem& files) : ForwardingFiles(files) {}

  // Counts anew, and sets stop() at the block of this number, from 1 on; 0: at none.
  void StopAt(uint64_t block) {
    stop_at_ = block;
    blocks_ = behind_ = 0;
    stop_ = false;
  }
  const std::atomic<bool>& stop() const { return stop_; }
  uint64_t blocks() const { return blocks_; }
  uint64_t blocks_behind_stop() const { return behind_; }

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    HDPS_ASSIGN_OR_RETURN(auto file, ForwardingFiles::OpenSequential(path));
    return std::unique_ptr<SequentialFile>(std::make_unique<ReadFile>(*this, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    HDPS_ASSIGN_OR_RETURN(auto file, ForwardingFiles::Create(path));
    return std::unique_ptr<WritableFile>(std::make_unique<WrittenFile>(*this, std::move(file)));
  }

 private:
  class ReadFile : public SequentialFile, public SeekableFile {
   public:
    ReadFile(CountedFiles& files, std::unique_ptr<SequentialFile> file)
        : files_(files), file_(std::move(file)), anywhere_(dynamic_cast<SeekableFile&>(*file_)) {}
    Result<size_t> Read(std::span<std::byte> buffer) override {
      files_.Count();
      return file_->Read(buffer);
    }
    Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) override {
      files_.Count();
      return anywhere_.ReadAt(offset, buffer);
    }
    void WillRead(uint64_t, size_t) override {}

   private:
    CountedFiles& files_;
    const std::unique_ptr<SequentialFile> file_;
    SeekableFile& anywhere_;
  };
  class WrittenFile : public WritableFile {
   public:
    WrittenFile(CountedFiles& files, std::unique_ptr<WritableFile> file)
        : files_(files), file_(std::move(file)) {}
    Status Append(std::span<const std::byte> bytes) override {
      files_.Count();
      return file_->Append(bytes);
    }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    CountedFiles& files_;
    const std::unique_ptr<WritableFile> file_;
  };

  void Count() {
    if (stop_) ++behind_;
    if (++blocks_ == stop_at_) stop_ = true;
  }

  uint64_t stop_at_ = 0, blocks_ = 0, behind_ = 0;
  std::atomic<bool> stop_ = false;
};

}  // namespace hdps
