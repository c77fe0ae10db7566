// Uses write, fsync and read, with posix_fadvise between them.
#include "benchmarks/yardsticks/plain_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "benchmarks/bench.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

Status WriteAll(FileSystem& files, const std::string& path, uint64_t bytes,
                std::span<const std::byte> piece) {
  HDPS_ASSIGN_OR_RETURN(const auto file, files.Create(path));
  for (uint64_t left = bytes; left > 0;) {
    const auto now = static_cast<size_t>(std::min<uint64_t>(left, piece.size()));
    HDPS_RETURN_IF_ERROR(file->Append(piece.first(now)));
    left -= now;
  }
  HDPS_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

Status ReadAll(FileSystem& files, const std::string& path, std::span<std::byte> piece) {
  HDPS_ASSIGN_OR_RETURN(const auto file, files.OpenSequential(path));
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, file->Read(piece));
    if (got == 0) return Status();
  }
}

}  // namespace

Result<double> SecondsToWrite(FileSystem& files, const std::string& path, uint64_t bytes) {
  std::vector<std::byte> piece(kPieceBytes);
  Random random(1);
  for (std::byte& one : piece) one = static_cast<std::byte>(random.Next());
  Status status;
  const double seconds = SecondsOf([&] { status = WriteAll(files, path, bytes, piece); });
  if (!status.ok()) return status;
  return seconds;
}

Result<double> SecondsToRead(FileSystem& files, const std::string& path) {
  std::vector<std::byte> piece(kPieceBytes);
  Status status;
  const double seconds = SecondsOf([&] { status = ReadAll(files, path, piece); });
  if (!status.ok()) return status;
  return seconds;
}

void ForgetFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0) return;
  fdatasync(file);
  (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

}  // namespace hdps
