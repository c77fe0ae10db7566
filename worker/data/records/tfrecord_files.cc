// Checks lengths and contents by isa-l's CRC32C.
#include "worker/data/records/tfrecord_files.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/platform/seekable_file.h"
#include "worker/data/compressed_file.h"
#include "worker/data/line_reader.h"

#ifdef HDPS_WITH_TFRECORD
#include <isa-l/crc.h>
#endif

namespace hdps {

#ifdef HDPS_WITH_TFRECORD

namespace {

// A record is 8 bytes of its length, 4 of their checksum, its contents, and 4 of their checksum;
// numbers have their lowest byte first.
constexpr size_t kLengthBytes = 8, kHeadBytes = 12, kSumBytes = 4;

uint32_t MaskedCrc(std::span<const std::byte> bytes) {
  // isa-l wants bytes that may be changed, though it leaves them, and inverts neither the first
  // value nor the result.
  auto* const data =
      const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  const uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~uint32_t{0});
  return std::rotr(crc, 15) + 0xa282ead8u;
}

template <typename Number>
Number NumberAt(const std::byte* at) {
  Number number = 0;
  std::memcpy(&number, at, sizeof(number));
  return number;
}

// A length may begin with the bytes of a packed file, so its checksum is asked first.
Packing PackingOfFront(std::span<const std::byte> front) {
  return IsTfrecordFront(front) ? Packing::kNone : PackingOf(front, /*zlib=*/true);
}

std::string Hex(uint32_t number) {
  std::array<char, 16> text = {};
  std::snprintf(text.data(), text.size(), "%08x", number);
  return text.data();
}

// The records of one file, each behind 32 bits of its length.
//
// Invariant: record_ holds the current record, of which the bytes before given_ were given.
class TfrecordFile : public UnpackedFile {
 public:
  TfrecordFile(const std::string& path, std::unique_ptr<UnpackedFile> file)
      : path_(path), file_(std::move(file)) {}

  Result<size_t> Read(std::span<std::byte> to) override {
    size_t given = 0;
    while (given < to.size()) {
      if (given_ == record_.size()) {
        // An error waits until the rows before it were taken.
        if (given > 0 && !failed_.ok()) break;
        HDPS_RETURN_IF_ERROR(failed_);
        failed_ = NextRecord();
        if (!failed_.ok()) continue;
        if (record_.empty()) break;
      }
      const size_t bytes = std::min(to.size() - given, record_.size() - given_);
      std::memcpy(to.data() + given, record_.data() + given_, bytes);
      given += bytes;
      given_ += bytes;
    }
    return given;
  }
  uint64_t packed_bytes_read() const override { return file_->packed_bytes_read(); }
  bool seekable() const override { return false; }

 private:
  // Reads the next record; an empty record_ is the end of the file.
  Status NextRecord() {
    record_.clear();
    given_ = 0;
    ++number_;
    std::array<std::byte, kHeadBytes> head;
    HDPS_ASSIGN_OR_RETURN(const size_t of_head, Fill(head));
    if (of_head == 0) return {};
    const bool whole = of_head == kHeadBytes;
    if (number_ == 1 && !IsTfrecordFront({head.data(), of_head}))
      return NoTfrecord({head.data(), of_head});
    if (!whole) {
      return Wrong("this record has " + std::to_string(of_head) + " of the " +
                   std::to_string(kHeadBytes) + " bytes before its contents");
    }
    const auto length = NumberAt<uint64_t>(head.data());
    HDPS_RETURN_IF_ERROR(CheckSum("the length of this record, " + std::to_string(length) + ",",
                                  std::span(head).first(kLengthBytes), head.data() + kLengthBytes));
    if (length > kLineBytesMax) {
      return {Code::kInvalidArgument, Place() + ": a record of " + std::to_string(length) +
                                          " bytes: expected at most " +
                                          std::to_string(kLineBytesMax)};
    }
    return ReadContents(static_cast<size_t>(length));
  }

  Status ReadContents(size_t length) {
    const auto frame = static_cast<uint32_t>(length);
    record_.resize(sizeof(frame) + length + kSumBytes);
    std::memcpy(record_.data(), &frame, sizeof(frame));
    const std::span<std::byte> rest = std::span(record_).subspan(sizeof(frame));
    const Result<size_t> got = Fill(rest);
    if (!got.ok() || *got < rest.size()) {
      record_.clear();
      HDPS_RETURN_IF_ERROR(got.status());
      return Wrong("this record has " + std::to_string(*got) + " of " +
                   std::to_string(length + kSumBytes) + " bytes of contents and checksum");
    }
    const Status summed = CheckSum("this record, of " + std::to_string(length) + " bytes,",
                                   rest.first(length), rest.data() + length);
    record_.resize(summed.ok() ? record_.size() - kSumBytes : 0);
    return summed;
  }

  // Returns how many bytes there were.
  Result<size_t> Fill(std::span<std::byte> to) {
    size_t filled = 0;
    while (filled < to.size()) {
      HDPS_ASSIGN_OR_RETURN(const size_t got, file_->Read(to.subspan(filled)));
      if (got == 0) break;
      filled += got;
    }
    return filled;
  }

  Status CheckSum(const std::string& what, std::span<const std::byte> bytes,
                  const std::byte* sum) const {
    const uint32_t wanted = NumberAt<uint32_t>(sum), found = MaskedCrc(bytes);
    if (wanted == found) return {};
    return Wrong(what + " has the checksum " + Hex(found) + ", but the file says " + Hex(wanted));
  }
  Status Wrong(const std::string& what) const {
    return {Code::kInvalidArgument,
            Place() + ": " + what + ": expected a whole TFRecord file; copy or write it again"};
  }
  Status NoTfrecord(std::span<const std::byte> front) const {
    constexpr size_t kShown = 4;
    const std::string_view text(reinterpret_cast<const char*>(front.data()),
                                std::min(front.size(), kShown));
    return {Code::kInvalidArgument,
            path_ + ": this is no TFRecord file, or its first bytes are damaged: they are '" +
                EscapeUntrusted(text) +
                "', expected the length of a record and its checksum, as data.format is tfrecord "
                "for all files of a job"};
  }
  std::string Place() const { return path_ + ":" + std::to_string(number_); }

  const std::string path_;
  const std::unique_ptr<UnpackedFile> file_;
  uint64_t number_ = 0;  // Of the record that was read last, from 1.
  std::vector<std::byte> record_;
  size_t given_ = 0;
  Status failed_;
};

class TfrecordFiles : public RecordFiles {
 public:
  Result<std::unique_ptr<UnpackedFile>> Open(FileSystem& files, const std::string& path) override {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<UnpackedFile> file,
                          OpenUnpacked(files, path, PackingOfFront));
    return std::unique_ptr<UnpackedFile>(std::make_unique<TfrecordFile>(path, std::move(file)));
  }
};

}  // namespace

Status ExamplesAreRead() { return {}; }

bool IsTfrecordFront(std::span<const std::byte> front) {
  static_assert(kHeadBytes == kPackingBytes);
  return front.size() >= kHeadBytes &&
         MaskedCrc(front.first(kLengthBytes)) == NumberAt<uint32_t>(front.data() + kLengthBytes);
}

bool IsTfrecord(FileSystem& files, const std::string& path) {
  {
    const Result<std::unique_ptr<SequentialFile>> file = files.OpenSequential(path);
    // A pipe is not looked at, because what is read of it is gone.
    if (!file.ok() || dynamic_cast<SeekableFile*>(file->get()) == nullptr) return false;
  }
  const Result<std::unique_ptr<UnpackedFile>> file = OpenUnpacked(files, path, PackingOfFront);
  if (!file.ok()) return false;
  std::array<std::byte, kHeadBytes> head;
  for (size_t filled = 0; filled < head.size();) {
    const Result<size_t> got = (*file)->Read(std::span(head).subspan(filled));
    if (!got.ok() || *got == 0) return false;
    filled += *got;
  }
  return IsTfrecordFront(head);
}

#else

namespace {

class NoTfrecordFiles : public RecordFiles {
 public:
  Result<std::unique_ptr<UnpackedFile>> Open(FileSystem&, const std::string&) override {
    return ExamplesAreRead();
  }
};

using TfrecordFiles = NoTfrecordFiles;

}  // namespace

Status ExamplesAreRead() {
  return {Code::kInvalidArgument,
          "data.format is tfrecord, which this build of hdps does not read; "
          "scripts/install_deps.sh --tensorboard installs libisal-dev, libprotobuf-dev "
          "and protobuf-compiler; then configure and build again"};
}

bool IsTfrecordFront(std::span<const std::byte>) { return false; }

bool IsTfrecord(FileSystem&, const std::string&) { return false; }

#endif

std::shared_ptr<RecordFiles> NewTfrecordFiles() { return std::make_shared<TfrecordFiles>(); }

}  // namespace hdps
