// The places where the scheduler's address may stand: the command line, or a file.
#include "common/protocol/locate/scheduler_locator.h"

#include <utility>

#include "common/base/outside_text.h"
#include "common/net/address.h"
#include "common/net/listening.h"

namespace hdps {
namespace {

class FixedLocator : public SchedulerLocator {
 public:
  explicit FixedLocator(std::string address) : address_(std::move(address)) {}
  Result<std::string> Newest() override { return address_; }

 private:
  const std::string address_;
};

class FileLocator : public SchedulerLocator {
 public:
  FileLocator(std::unique_ptr<FileSystem> files, std::string path)
      : files_(std::move(files)), path_(std::move(path)) {}

  Result<std::string> Newest() override {
    const Result<std::string> text = ReadWholeFile(*files_, path_, kAddressBytesMax + 1);
    const std::string flag = "--scheduler=" + std::string(kFileScheme) + path_;
    if (!text.ok()) {
      return Status(Code::kUnavailable, flag + " cannot be read: " + text.status().message());
    }
    const std::string address = text->substr(0, text->find('\n'));
    const Result<Address> parsed = ParseAddress(address);
    if (parsed.ok() && parsed->CanBeDialed()) return address;
    return Status(Code::kUnavailable,
                  flag + ": the file holds \"" + EscapeUntrusted(address, kShownBytesMax) +
                      "\", which is no address of a scheduler; hdps-scheduler --address_file=" +
                      path_ + " writes one");
  }

 private:
  static constexpr size_t kShownBytesMax = 80;

  const std::unique_ptr<FileSystem> files_;
  const std::string path_;
};

}  // namespace

std::unique_ptr<SchedulerLocator> NewFixedLocator(std::string address) {
  return std::make_unique<FixedLocator>(std::move(address));
}

std::unique_ptr<SchedulerLocator> NewFileLocator(std::unique_ptr<FileSystem> files,
                                                 std::string path) {
  return std::make_unique<FileLocator>(std::move(files), std::move(path));
}

Result<std::unique_ptr<SchedulerLocator>> LocateScheduler(const std::string& text, bool may_leave) {
  if (text.starts_with(kFileScheme)) {
    std::string path = text.substr(kFileScheme.size());
    if (!path.empty()) return NewFileLocator(NewPosixFileSystem(), std::move(path));
    return Status(Code::kInvalidArgument, "--scheduler=" + text +
                                              " names no file; write file:PATH, the file that "
                                              "hdps-scheduler --address_file=PATH writes");
  }
  const Result<Address> address = AddressToDial(text, may_leave);
  if (address.ok()) return NewFixedLocator(text);
  return Status(address.status().code(), "--scheduler: " + address.status().message());
}

}  // namespace hdps
