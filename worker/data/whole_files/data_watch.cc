// Compares the stamps of files with those of the last look.
#include "worker/data/whole_files/data_watch.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/hash.h"
#include "common/base/show_number.h"
#include "common/platform/seekable_file.h"
#include "common/protocol/manifest_parts.h"

namespace hdps {
namespace {

std::string Bytes(uint64_t bytes) { return ShowWhole(static_cast<double>(bytes)) + " bytes"; }

std::string Change(const std::string& path, const FileStamp& before, const FileStamp& now) {
  if (before.bytes == now.bytes) return path + " was written anew, with " + Bytes(now.bytes);
  return path + " had " + Bytes(before.bytes) + " and has " + Bytes(now.bytes) + " now";
}

}  // namespace

DataWatch::DataWatch(FileSystem& files, std::vector<std::string> paths)
    : files_(files), paths_(std::move(paths)) {}

std::string DataWatch::Look(const std::string& then) {
  constexpr size_t kShownMax = 3;
  std::vector<FileStamp> now;
  for (const std::string& path : paths_) {
    const Result<FileStamp> stamp = files_.StampOf(path);
    now.push_back(stamp.ok() ? *stamp : FileStamp());  // The reader will report a missing file.
  }
  const std::vector<FileStamp> before = std::exchange(stamps_, now);
  std::string text;
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == now[i] || ++changed > kShownMax) continue;
    text += (changed == 1 ? "" : ", ") + Change(paths_[i], before[i], now[i]);
  }
  if (changed == 0) return "";
  if (changed > kShownMax) {
    text += ", and " + std::to_string(changed - kShownMax) + " more have changed";
  }
  return text + ": " + then;
}

std::vector<FilePrint> DataWatch::Prints() {
  std::vector<FilePrint> prints;
  for (size_t i = 0; i < std::min(paths_.size(), kFilePrintsMax); ++i) {
    prints.push_back(PrintOf(files_, paths_[i]));
  }
  return prints;
}

namespace {

// Adds the bytes from `begin` on to the hash of the print; false if they cannot be read.
bool AddBytes(SeekableFile& file, uint64_t begin, std::span<std::byte> bytes, FilePrint* print) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const Result<size_t> got = file.ReadAt(begin + filled, bytes.subspan(filled));
    if (!got.ok() || *got == 0) return false;
    filled += *got;
  }
  print->hash = HashBytes(bytes, print->hash);
  return true;
}

}  // namespace

FilePrint PrintOf(FileSystem& files, const std::string& path) {
  constexpr size_t kEndBytes = size_t{1} << 16;
  const Result<uint64_t> bytes = files.FileSize(path);
  if (!bytes.ok() || *bytes == 0) return {};
  const Result<std::unique_ptr<SequentialFile>> file = files.OpenSequential(path);
  auto* const seekable = file.ok() ? dynamic_cast<SeekableFile*>(file->get()) : nullptr;
  if (seekable == nullptr) return {};
  FilePrint print{.bytes = *bytes};
  std::vector<std::byte> end(std::min<uint64_t>(kEndBytes, *bytes));
  for (const uint64_t begin : {uint64_t{0}, *bytes - end.size()}) {
    if (!AddBytes(*seekable, begin, end, &print)) return {};
  }
  return print;
}

FilePrint GrowingPrintOf(FileSystem& files, const std::string& path) {
  constexpr size_t kBeginBytes = 4096;
  const Result<uint64_t> bytes = files.FileSize(path);
  if (!bytes.ok()) return {};
  FilePrint print{.bytes = *bytes};
  if (*bytes < kBeginBytes) return print;
  const Result<std::unique_ptr<SequentialFile>> file = files.OpenSequential(path);
  auto* const seekable = file.ok() ? dynamic_cast<SeekableFile*>(file->get()) : nullptr;
  std::vector<std::byte> begin(kBeginBytes);
  if (seekable == nullptr || !AddBytes(*seekable, 0, begin, &print)) return {};
  return print;
}

}  // namespace hdps
