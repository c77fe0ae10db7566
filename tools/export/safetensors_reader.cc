// Parses with a bound on depth, then compares every number with the length of the file.
#include "tools/export/safetensors_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/base/outside_text.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kHeaderBytesMax = 100'000'000;
constexpr int kDepthMax = 4;

// Returns the bytes of a number; 0 for numbers that the form does not have.
uint64_t BytesOf(const std::string& dtype) {
  for (const char* known : {"F64", "I64", "U64"}) {
    if (dtype == known) return 8;
  }
  for (const char* known : {"F32", "I32", "U32"}) {
    if (dtype == known) return 4;
  }
  for (const char* known : {"F16", "BF16", "I16", "U16"}) {
    if (dtype == known) return 2;
  }
  for (const char* known : {"I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"}) {
    if (dtype == known) return 1;
  }
  return 0;
}

// Returns the header as JSON; discarded if it is none, nests too deep, or has a name twice.
Json ParseHeader(const std::string& text) {
  bool bad = false;
  std::vector<std::set<std::string>> names;
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDepthMax) bad = true;
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(parsed).second) bad = true;
    return !bad;
  };
  Json json = Json::parse(text, look, /*allow_exceptions=*/false);
  return bad || !json.is_object() ? Json(Json::value_t::discarded) : json;
}

// Returns the entry that `json` describes, with `begin` from the begin of the data; an empty dtype
// if it describes none.
SafetensorsFile::Entry EntryOf(const std::string& name, const Json& json) {
  SafetensorsFile::Entry entry{{name, "", {}}, 0, 0};
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return entry;
  }
  const Json &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
  const auto whole = [](const Json& number) { return number.is_number_unsigned(); };
  if (!dtype.is_string() || !shape.is_array() || !std::ranges::all_of(shape, whole) ||
      !offsets.is_array() || offsets.size() != 2 || !std::ranges::all_of(offsets, whole)) {
    return entry;
  }
  entry.tensor.shape = shape.get<std::vector<uint64_t>>();
  uint64_t bytes = BytesOf(dtype.get<std::string>());
  bool fits = bytes > 0;
  for (const uint64_t size : entry.tensor.shape) {
    fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.bytes = bytes;
  const uint64_t end = offsets[1].get<uint64_t>();
  if (fits && end >= entry.begin && end - entry.begin == bytes) {
    entry.tensor.dtype = dtype.get<std::string>();
  }
  return entry;
}

}  // namespace

Status SafetensorsFile::Wrong(const std::string& what) const {
  return {Code::kInvalidArgument,
          path_ + ": " + what + "; expected a whole file of the form safetensors"};
}

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(FileSystem& files,
                                                               const std::string& path) {
  std::unique_ptr<SafetensorsFile> opened(new SafetensorsFile(path));
  HDPS_ASSIGN_OR_RETURN(const uint64_t size, files.FileSize(path));
  HDPS_ASSIGN_OR_RETURN(opened->file_, files.OpenSequential(path));
  opened->seekable_ = dynamic_cast<SeekableFile*>(opened->file_.get());
  if (opened->seekable_ == nullptr) return opened->Wrong("it cannot be read from any position");
  uint64_t header_bytes = 0;
  if (size < sizeof(header_bytes)) {
    return opened->Wrong("it has " + std::to_string(size) + " bytes");
  }
  const Entry length{{}, 0, sizeof(header_bytes)};
  HDPS_RETURN_IF_ERROR(
      opened->Read(length, 0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > std::min(kHeaderBytesMax, size - sizeof(header_bytes))) {
    return opened->Wrong("its header says that it has " + std::to_string(header_bytes) +
                         " bytes, of " + std::to_string(size) + " in all");
  }
  std::string header(header_bytes, ' ');
  const Entry place{{}, sizeof(header_bytes), header_bytes};
  HDPS_RETURN_IF_ERROR(opened->Read(place, 0, std::as_writable_bytes(std::span(header))));
  HDPS_RETURN_IF_ERROR(opened->Parse(header, size - sizeof(header_bytes) - header_bytes));
  for (Entry& entry : opened->entries_) entry.begin += sizeof(header_bytes) + header_bytes;
  return opened;
}

Status SafetensorsFile::Parse(const std::string& header, uint64_t data_bytes) {
  const Json json = ParseHeader(header);
  if (json.is_discarded()) return Wrong("its header is not an object of JSON with each name once");
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") continue;
    entries_.push_back(EntryOf(name, value));
    if (entries_.back().tensor.dtype.empty()) {
      return Wrong("what its header says of \"" + EscapeUntrusted(name) +
                   "\" is no tensor whose numbers fill its bytes");
    }
  }
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });
  uint64_t end = 0;
  for (const Entry& entry : entries_) {
    if (entry.begin != end) {
      return Wrong("tensor \"" + EscapeUntrusted(entry.tensor.name) + "\" begins at byte " +
                   std::to_string(entry.begin) + " of the data, and what is before it ends at " +
                   std::to_string(end));
    }
    if (entry.bytes > data_bytes - end) {
      return Wrong("tensor \"" + EscapeUntrusted(entry.tensor.name) +
                   "\" ends behind the file's last byte");
    }
    end += entry.bytes;
  }
  if (end == data_bytes) return {};
  return Wrong(std::to_string(data_bytes - end) + " bytes behind its tensors belong to none");
}

Status SafetensorsFile::Read(const Entry& entry, uint64_t offset,
                             std::span<std::byte> bytes) const {
  CHECK(offset + bytes.size() <= entry.bytes);
  uint64_t at = entry.begin + offset;
  while (!bytes.empty()) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, seekable_->ReadAt(at, bytes));
    if (got == 0) return Wrong("it has become shorter");
    at += got;
    bytes = bytes.subspan(got);
  }
  return {};
}

}  // namespace hdps
