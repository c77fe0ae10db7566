// Joins two streams of bytes into one of images with their labels.
#include "worker/data/idx_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hdps {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

Status Wrong(const std::string& path, const std::string& what) {
  return {Code::kInvalidArgument, path + ": " + what};
}

std::string Shown(std::span<const uint32_t> lengths) {
  std::string text;
  for (const uint32_t length : lengths)
    text += (text.empty() ? "" : " x ") + std::to_string(length);
  return text;
}

// Reads a file of bytes in the IDX format: its lengths, then its elements.
class IdxStream {
 public:
  static Result<IdxStream> Open(FileSystem& files, const std::string& path) {
    IdxStream stream;
    stream.path_ = path;
    HDPS_ASSIGN_OR_RETURN(stream.file_, OpenUnpacked(files, path));
    std::array<std::byte, 4> word;
    HDPS_RETURN_IF_ERROR(stream.ReadAll(word));
    constexpr std::byte kBytes{8};
    const auto axes = static_cast<size_t>(word[3]);
    constexpr size_t kAxesMax = 8;
    if (word[0] != std::byte{0} || word[1] != std::byte{0} || axes == 0 || axes > kAxesMax) {
      return Wrong(path,
                   "it does not begin as an IDX file does: expected 0, 0, 8 and the number of "
                   "axes; other formats are named in data.format");
    }
    if (word[2] != kBytes) {
      return Wrong(path, "its elements are of type " + std::to_string(static_cast<int>(word[2])) +
                             ": expected 8, unsigned bytes");
    }
    for (size_t axis = 0; axis < axes; ++axis) {
      HDPS_RETURN_IF_ERROR(stream.ReadAll(word));
      uint32_t length = 0;
      for (const std::byte byte : word) length = length << 8 | static_cast<uint32_t>(byte);
      stream.lengths_.push_back(length);
    }
    return stream;
  }

  const std::string& path() const { return path_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  uint64_t packed_bytes_read() const { return file_->packed_bytes_read(); }

  // Fills `bytes`; returns an error if the file ends before.
  Status ReadAll(std::span<std::byte> bytes) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, ReadSome(bytes));
    if (got == bytes.size()) return {};
    return Wrong(path_, "the file ends inside of what its first bytes announce: it was cut short");
  }
  // Reads as many bytes as there are.
  Result<size_t> ReadSome(std::span<std::byte> bytes) {
    size_t filled = 0;
    while (filled < bytes.size()) {
      if (begin_ == end_) {
        HDPS_ASSIGN_OR_RETURN(end_, file_->Read(buffer_));
        begin_ = 0;
        if (end_ == 0) break;
      }
      const size_t count = std::min(bytes.size() - filled, end_ - begin_);
      std::copy_n(buffer_.data() + begin_, count, bytes.data() + filled);
      begin_ += count;
      filled += count;
    }
    return filled;
  }
  Status ExpectEnd() {
    std::byte more;
    HDPS_ASSIGN_OR_RETURN(const size_t got, ReadSome({&more, 1}));
    if (got == 0) return {};
    return Wrong(path_, "there are bytes behind the last of the " + Shown(lengths_) +
                            " that its first bytes announce");
  }

 private:
  IdxStream() : buffer_(kBufferBytes) {}

  std::string path_;
  std::unique_ptr<UnpackedFile> file_;
  std::vector<uint32_t> lengths_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;  // [begin_, end_) of buffer_ are read and not yet returned.
};

// Invariant: both files had all bytes of every image that Read has begun.
class LabelledImages : public UnpackedFile {
 public:
  LabelledImages(IdxStream images, std::optional<IdxStream> labels, size_t image_bytes)
      : images_(std::move(images)), labels_(std::move(labels)), image_(image_bytes) {
    given_ = image_.size();
  }

  Result<size_t> Read(std::span<std::byte> to) override {
    size_t filled = 0;
    while (filled < to.size()) {
      if (given_ == image_.size()) {
        if (done_ == images_.lengths()[0]) {
          if (filled == 0) HDPS_RETURN_IF_ERROR(ExpectEnds());
          break;
        }
        HDPS_RETURN_IF_ERROR(NextImage());
      }
      const size_t count = std::min(to.size() - filled, image_.size() - given_);
      std::copy_n(image_.data() + given_, count, to.data() + filled);
      given_ += count;
      filled += count;
    }
    return filled;
  }
  uint64_t packed_bytes_read() const override { return images_.packed_bytes_read(); }
  bool seekable() const override { return false; }

 private:
  Status NextImage() {
    if (labels_) HDPS_RETURN_IF_ERROR(labels_->ReadAll({image_.data(), 1}));
    HDPS_RETURN_IF_ERROR(images_.ReadAll(std::span(image_).subspan(1)));
    ++done_;
    given_ = 0;
    return {};
  }
  Status ExpectEnds() {
    HDPS_RETURN_IF_ERROR(images_.ExpectEnd());
    return labels_ ? labels_->ExpectEnd() : Status();
  }

  IdxStream images_;
  std::optional<IdxStream> labels_;
  std::vector<std::byte> image_;  // The current image, with its label first.
  size_t given_;                  // Bytes of it that were returned.
  uint32_t done_ = 0;             // Number of images read.
};

Status CheckShape(const IdxStream& images, std::span<const uint32_t> image_shape) {
  const std::span<const uint32_t> lengths = images.lengths();
  if (std::ranges::equal(lengths.subspan(1), image_shape)) return {};
  if (lengths.size() == 1) {
    return Wrong(images.path(),
                 "it has one axis, as labels have: expected images; their labels are "
                 "found by their name");
  }
  return Wrong(images.path(), "its images are " + Shown(lengths.subspan(1)) +
                                  ", but data.image_shape is " + Shown(image_shape));
}

}  // namespace

size_t ImageBytes(std::span<const uint32_t> image_shape) {
  size_t bytes = 1;
  for (const uint32_t axis : image_shape) bytes *= axis;
  return 1 + bytes;
}

std::string LabelsPathOf(const std::string& images) {
  constexpr std::string_view kImages = "images", kLabels = "labels", kThree = "idx3", kOne = "idx1";
  std::string path = images;
  const size_t name = path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1;
  const size_t at = path.rfind(kImages);
  if (at == path.npos || at < name) return "";
  path.replace(at, kImages.size(), kLabels);
  const size_t axes = path.find(kThree, at);
  if (axes != path.npos) path.replace(axes, kThree.size(), kOne);
  return path;
}

Result<std::unique_ptr<UnpackedFile>> OpenImages(FileSystem& files, const std::string& path,
                                                 std::span<const uint32_t> image_shape,
                                                 bool labels_read) {
  HDPS_ASSIGN_OR_RETURN(IdxStream images, IdxStream::Open(files, path));
  HDPS_RETURN_IF_ERROR(CheckShape(images, image_shape));
  const std::string labels_path = LabelsPathOf(path);
  std::optional<IdxStream> labels;
  if (labels_read && labels_path.empty()) {
    return Wrong(path,
                 "where its labels are follows from the word `images` in its name, and there "
                 "is none: expected a name such as train-images-idx3-ubyte");
  }
  if (labels_read) {
    if (!files.Exists(labels_path)) {
      return Wrong(path, "its labels are not there: expected " + labels_path);
    }
    HDPS_ASSIGN_OR_RETURN(labels, IdxStream::Open(files, labels_path));
    if (labels->lengths().size() != 1 || labels->lengths()[0] != images.lengths()[0]) {
      return Wrong(labels_path, "it is of " + Shown(labels->lengths()) + " labels, and " + path +
                                    " has " + std::to_string(images.lengths()[0]) +
                                    " images: expected a label an image");
    }
  }
  return std::unique_ptr<UnpackedFile>(std::make_unique<LabelledImages>(
      std::move(images), std::move(labels), ImageBytes(image_shape)));
}

}  // namespace hdps
