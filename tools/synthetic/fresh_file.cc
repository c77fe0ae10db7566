// Writes a new file, or compares an existing one with the data to be written.
#include "tools/synthetic/fresh_file.h"

#include <cstring>
#include <utility>
#include <vector>

#include "common/platform/output_file.h"

namespace hdps {
namespace {

// Compares an existing file with what is appended.
//
// Invariant: the file begins with what was appended.
class SameFile : public WritableFile {
 public:
  SameFile(std::string path, std::unique_ptr<SequentialFile> there)
      : path_(std::move(path)), there_(std::move(there)) {}

  Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      HDPS_ASSIGN_OR_RETURN(const size_t got, Read(bytes.size()));
      if (got == 0 || std::memcmp(buffer_.data(), bytes.data(), got) != 0) return Other();
      bytes = bytes.subspan(got);
    }
    return {};
  }
  Status Sync() override { return {}; }
  Status Close() override {
    HDPS_ASSIGN_OR_RETURN(const size_t more, Read(1));
    return more == 0 ? Status() : Other();
  }

 private:
  Result<size_t> Read(size_t bytes) {
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    return there_->Read(std::span(buffer_).first(bytes));
  }
  Status Other() const {
    return {Code::kInvalidArgument,
            path_ +
                " is there already, with other bytes than these flags give, and is left as it "
                "is: expected another folder for --out, or that file removed"};
  }

  const std::string path_;
  const std::unique_ptr<SequentialFile> there_;
  std::vector<std::byte> buffer_;
};

}  // namespace

Result<std::unique_ptr<WritableFile>> CreateFresh(FileSystem& files, const std::string& path) {
  if (!files.Exists(path)) return CreateAtomically(files, path);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> there, files.OpenSequential(path));
  return std::unique_ptr<WritableFile>(std::make_unique<SameFile>(path, std::move(there)));
}

}  // namespace hdps
