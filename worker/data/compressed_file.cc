// Unpacks files with libz and libzstd.
#include "worker/data/compressed_file.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "common/platform/seekable_file.h"
#include "worker/data/records/tfrecord_files.h"

namespace hdps {
namespace {

constexpr size_t kPackedChunkBytes = size_t{256} << 10;
// The largest window of zstd's levels up to 19, which every decoder should accept (RFC 8878).
// Without a limit a frame of a few bytes could ask for gigabytes.
constexpr int kZstdWindowLogMax = 23;
constexpr int kGzipOnly = 16;  // Added to zlib's window bits.

// Reads the packed bytes, one chunk at a time.
// Invariant: [begin_, end_) of chunk_ are read and not yet consumed; ended() is true only if there
// are none and the file has no more.
class PackedInput {
 public:
  explicit PackedInput(std::unique_ptr<SequentialFile> file)
      : file_(std::move(file)),
        seekable_(dynamic_cast<const SeekableFile*>(file_.get()) != nullptr),
        chunk_(std::make_unique_for_overwrite<std::byte[]>(kPackedChunkBytes)) {}

  // Reads more if everything was consumed.
  Status Refill() {
    if (begin_ < end_ || ended_) return {};
    HDPS_ASSIGN_OR_RETURN(const size_t got, file_->Read({chunk_.get(), kPackedChunkBytes}));
    begin_ = 0;
    end_ = got;
    bytes_read_ += got;
    ended_ = got == 0;
    return {};
  }
  // Reads until the first `count` bytes are there, or the file ends.
  Status FillFront(size_t count) {
    while (end_ < count && !ended_) {
      HDPS_ASSIGN_OR_RETURN(const size_t got,
                            file_->Read({chunk_.get() + end_, kPackedChunkBytes - end_}));
      end_ += got;
      bytes_read_ += got;
      ended_ = got == 0;
    }
    ended_ = ended_ && begin_ == end_;
    return {};
  }
  // Reads straight into the caller's buffer. Requires: everything was consumed.
  Result<size_t> ReadInto(std::span<std::byte> buffer) {
    if (ended_) return size_t{0};
    HDPS_ASSIGN_OR_RETURN(const size_t got, file_->Read(buffer));
    bytes_read_ += got;
    ended_ = got == 0;
    return got;
  }
  std::span<std::byte> ready() { return {chunk_.get() + begin_, end_ - begin_}; }
  void Consume(size_t count) { begin_ += count; }
  bool ended() const { return ended_; }
  bool seekable() const { return seekable_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::unique_ptr<SequentialFile> file_;
  bool seekable_;
  std::unique_ptr<std::byte[]> chunk_;
  size_t begin_ = 0, end_ = 0;
  bool ended_ = false;
  uint64_t bytes_read_ = 0;
};

class PlainFile : public UnpackedFile {
 public:
  explicit PlainFile(PackedInput input) : input_(std::move(input)) {}
  Result<size_t> Read(std::span<std::byte> buffer) override {
    const std::span<std::byte> ready = input_.ready();
    if (ready.empty()) return input_.ReadInto(buffer);
    const size_t count = std::min(ready.size(), buffer.size());
    if (count > 0) std::memcpy(buffer.data(), ready.data(), count);
    input_.Consume(count);
    return count;
  }
  uint64_t packed_bytes_read() const override { return input_.bytes_read(); }
  bool seekable() const override { return input_.seekable(); }

 private:
  PackedInput input_;
};

Status Damaged(const std::string& path, const char* format, const std::string& why) {
  return {Code::kInvalidArgument, "unpacking '" + path + "' (" + format + "): " + why +
                                      ": expected a whole " + format + " file; pack it again"};
}

// A file packed by gzip, or by zlib, which has another frame around the same bytes.
class DeflatedFile : public UnpackedFile {
 public:
  DeflatedFile(PackedInput input, std::string path, bool gzip)
      : input_(std::move(input)),
        path_(std::move(path)),
        format_(gzip ? "gzip" : "zlib"),
        stream_() {
    ready_ = inflateInit2(&stream_, MAX_WBITS + (gzip ? kGzipOnly : 0)) == Z_OK;
  }
  ~DeflatedFile() override {
    if (ready_) inflateEnd(&stream_);
  }

  Result<size_t> Read(std::span<std::byte> buffer) override {
    if (!ready_) return Status(Code::kResourceExhausted, "no memory to unpack '" + path_ + "'");
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(buffer.size(), kPackedChunkBytes * 16));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      HDPS_RETURN_IF_ERROR(input_.Refill());
      if (input_.ended()) {
        if (between_members_) return size_t{0};
        return Damaged(path_, format_, "it ends in the middle");
      }
      if (between_members_) {
        HDPS_ASSIGN_OR_RETURN(const bool padding, SkipPadding());
        if (padding) continue;
        inflateReset(&stream_);
      }
      between_members_ = false;
      const std::span<std::byte> packed = input_.ready();
      stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
      stream_.avail_in = static_cast<uInt>(packed.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      input_.Consume(packed.size() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        between_members_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Damaged(path_, format_, stream_.msg != nullptr ? stream_.msg : "bad bytes");
      }
    }
    return size_t{room - stream_.avail_out};
  }
  uint64_t packed_bytes_read() const override { return input_.bytes_read(); }
  bool seekable() const override { return false; }

 private:
  // Skips zeros up to the end of the file, which tapes and copies of whole blocks leave, as gzip
  // itself does. Returns true while there may be more of them.
  Result<bool> SkipPadding() {
    const std::span<const std::byte> packed = input_.ready();
    size_t zeros = 0;
    while (zeros < packed.size() && packed[zeros] == std::byte{0}) ++zeros;
    if (zeros == 0 && !padded_) return false;
    padded_ = true;
    input_.Consume(zeros);
    if (zeros == packed.size()) return true;
    return Damaged(path_, format_, "behind its end there are zeros and then other bytes");
  }

  PackedInput input_;
  const std::string path_;
  const char* const format_;
  z_stream stream_;
  bool ready_ = false;
  bool between_members_ = false;
  bool padded_ = false;  // Zeros were found after a member.
};

class ZstdFile : public UnpackedFile {
 public:
  ZstdFile(PackedInput input, std::string path)
      : input_(std::move(input)), path_(std::move(path)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) return;
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kZstdWindowLogMax);
  }
  ~ZstdFile() override { ZSTD_freeDStream(stream_); }

  Result<size_t> Read(std::span<std::byte> buffer) override {
    if (stream_ == nullptr) {
      return Status(Code::kResourceExhausted, "no memory to unpack '" + path_ + "'");
    }
    ZSTD_outBuffer out = {buffer.data(), buffer.size(), 0};
    while (out.pos == 0) {
      HDPS_RETURN_IF_ERROR(input_.Refill());
      if (input_.ended() && between_frames_) return size_t{0};
      const bool ended = input_.ended();
      const std::span<std::byte> packed = input_.ready();
      ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
      const size_t result = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(result)) return Refused(result);
      input_.Consume(in.pos);
      between_frames_ = result == 0;
      if (ended && out.pos == 0 && !between_frames_) {
        return Damaged(path_, "zstd", "it ends in the middle");
      }
    }
    return out.pos;
  }
  uint64_t packed_bytes_read() const override { return input_.bytes_read(); }
  bool seekable() const override { return false; }

 private:
  Status Refused(size_t result) const {
    if (ZSTD_getErrorCode(result) != ZSTD_error_frameParameter_windowTooLarge) {
      return Damaged(path_, "zstd", ZSTD_getErrorName(result));
    }
    return {Code::kInvalidArgument,
            "unpacking '" + path_ + "' (zstd): it was packed with a window of more than " +
                std::to_string((1 << kZstdWindowLogMax) >> 20) +
                " MiB, which would be held in memory: expected what zstd packs at levels 1 to 19; "
                "pack it again without --long and --ultra"};
  }

  PackedInput input_;
  const std::string path_;
  ZSTD_DStream* stream_;
  bool between_frames_ = false;
};

bool BeginsWith(std::span<const std::byte> bytes, std::span<const uint8_t> magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool NamedLike(const std::string& path, const std::string& ending) {
  return path.size() > ending.size() && path.ends_with(ending);
}

}  // namespace

Packing PackingOf(std::span<const std::byte> front, bool zlib) {
  constexpr std::array<uint8_t, 3> kGzip = {0x1f, 0x8b, 0x08};
  constexpr std::array<uint8_t, 4> kZstd = {0x28, 0xb5, 0x2f, 0xfd};
  if (BeginsWith(front, kGzip)) return Packing::kGzip;
  if (BeginsWith(front, kZstd)) return Packing::kZstd;
  if (!zlib || front.size() < 2) return Packing::kNone;
  // RFC 1950: deflate, and the two bytes as one number are a multiple of 31.
  const auto first = static_cast<unsigned>(front[0]), second = static_cast<unsigned>(front[1]);
  const bool is_zlib = (first & 0x0f) == 8 && first >> 4 <= 7 && (256 * first + second) % 31 == 0;
  return is_zlib ? Packing::kZlib : Packing::kNone;
}

Result<std::unique_ptr<UnpackedFile>> OpenUnpacked(FileSystem& files, const std::string& path,
                                                   TellPacking tell) {
  // "PAR1", and the first byte of what follows there; a text may begin with the four letters.
  constexpr std::array<uint8_t, 5> kParquet = {'P', 'A', 'R', '1', 0x15};
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file, files.OpenSequential(path));
  PackedInput input(std::move(file));
  HDPS_RETURN_IF_ERROR(input.FillFront(kPackingBytes));
  const Packing packing =
      tell == nullptr ? PackingOf(input.ready(), /*zlib=*/false) : tell(input.ready());
  std::unique_ptr<UnpackedFile> unpacked;
  if (packing == Packing::kGzip || packing == Packing::kZlib) {
    unpacked = std::make_unique<DeflatedFile>(std::move(input), path, packing == Packing::kGzip);
  } else if (packing == Packing::kZstd) {
    unpacked = std::make_unique<ZstdFile>(std::move(input), path);
  } else if (tell == nullptr && BeginsWith(input.ready(), kParquet)) {
    return Status(Code::kInvalidArgument,
                  path +
                      ": this is a Parquet file: expected data.format to be parquet, for all "
                      "files of a job, or text");
  } else if (tell == nullptr && IsTfrecordFront(input.ready())) {
    return Status(Code::kInvalidArgument,
                  path +
                      ": this is a TFRecord file: expected data.format to be tfrecord, for all "
                      "files of a job, or text");
  } else if (NamedLike(path, ".gz")) {
    return Damaged(path, "gzip", "its first bytes are not those of one");
  } else if (NamedLike(path, ".zst")) {
    return Damaged(path, "zstd", "its first bytes are not those of one");
  } else {
    unpacked = std::make_unique<PlainFile>(std::move(input));
  }
  return unpacked;
}

}  // namespace hdps
