// Files whose reads and writes fail once their user is told to stop.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/platform/forwarding_files.h"

namespace hdps {

// Passes all calls on until stopped(): then kCancelled comes for each block of a file that is still
// to be read or written, so that a load of any length ends with the block at hand.
class StoppableFiles : public ForwardingFiles {
 public:
  // `files` must outlive it; `stop` may be null.
  StoppableFiles(FileSystem& files, const std::atomic<bool>* stop)
      : ForwardingFiles(files), stop_(stop) {}

  // May be called by any thread.
  void Stop() { stopped_ = true; }
  // Returns the files without the stop, for what goes on until all requests are answered.
  FileSystem& lasting() { return files(); }
  bool stopped() const { return stopped_ || (stop_ != nullptr && *stop_); }
  Status CheckGoesOn(const std::string& path) const;

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override;

 private:
  const std::atomic<bool>* const stop_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace hdps
