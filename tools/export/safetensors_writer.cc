// Prints the header with nlohmann's JSON and pads it with blanks.
#include "tools/export/safetensors_writer.h"

#include <glog/logging.h>

#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status.h"

namespace hdps {
namespace {

constexpr uint64_t kHeaderBytesMax = 100'000'000;
constexpr uint64_t kAlignment = 8;

uint64_t BytesOf(const std::string& dtype) {
  if (dtype == "I64") return 8;
  if (dtype == "F32") return 4;
  if (dtype == "F16" || dtype == "BF16") return 2;
  CHECK(dtype == "U8");
  return 1;
}

// Returns the length of the header in 8 bytes, and the header behind it.
Result<std::string> Header(const std::vector<SafeTensor>& tensors, const SafeMetadata& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t begin = 0;
  for (const SafeTensor& tensor : tensors) {
    const uint64_t end = begin + tensor.bytes();
    if (header.contains(tensor.name)) {
      return Status(Code::kInvalidArgument,
                    "two tensors would be named \"" + tensor.name +
                        "\"; expected a job whose features, tables and layers differ in name");
    }
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (header.empty()) text = "{}";
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  static_assert(std::endian::native == std::endian::little);
  std::array<char, sizeof(length)> bytes;
  std::memcpy(bytes.data(), &length, sizeof(length));
  return std::string(bytes.data(), bytes.size()) + text;
}

}  // namespace

uint64_t SafeTensor::bytes() const {
  uint64_t bytes = BytesOf(dtype);
  for (const uint64_t size : shape) bytes *= size;
  return bytes;
}

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    FileSystem& files, const std::string& path, std::vector<SafeTensor> tensors,
    const SafeMetadata& metadata) {
  HDPS_ASSIGN_OR_RETURN(const std::string header, Header(tensors, metadata));
  if (header.size() > kHeaderBytesMax) {
    return Status(Code::kInvalidArgument,
                  path + ": its header would have " + std::to_string(header.size()) +
                      " bytes, and readers of safetensors take at most " +
                      std::to_string(kHeaderBytesMax) +
                      "; expected a job with fewer tables, features and layers");
  }
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(path));
  HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(header))));
  uint64_t bytes = 0;
  for (const SafeTensor& tensor : tensors) bytes += tensor.bytes();
  return std::unique_ptr<SafetensorsWriter>(new SafetensorsWriter(std::move(file), bytes));
}

Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= bytes_left_);
  bytes_left_ -= bytes.size();
  return file_->Append(bytes);
}

Status SafetensorsWriter::Close() {
  CHECK(bytes_left_ == 0);
  HDPS_RETURN_IF_ERROR(file_->Sync());
  return file_->Close();
}

Status WriteSafetensors(FileSystem& files, const std::string& path,
                        const std::vector<SafeTensor>& tensors,
                        const std::vector<std::span<const std::byte>>& contents,
                        const SafeMetadata& metadata) {
  CHECK(tensors.size() == contents.size());
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                        SafetensorsWriter::Create(files, path, tensors, metadata));
  for (size_t i = 0; i < tensors.size(); ++i) {
    CHECK(contents[i].size() == tensors[i].bytes());
    HDPS_RETURN_IF_ERROR(writer->Append(contents[i]));
  }
  return writer->Close();
}

}  // namespace hdps
