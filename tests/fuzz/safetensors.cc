// Fuzzes safetensors files: accepted tensors lie within the file, and written again are the same.

#include <glog/logging.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "tools/export/safetensors_reader.h"
#include "tools/export/safetensors_writer.h"

namespace hdps::fuzz {
namespace {

// Returns the file of a header and the data behind it, with the length that the header has.
std::string Sealed(Input& input) {
  const std::string header(input.TakeBytes(input.Take<uint16_t>()));
  return BytesOf(uint64_t{header.size()}) + header + std::string(input.TakeRest());
}

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  const bool repaired = TakeChecksumRepair(input);
  const std::string text = repaired ? Sealed(input) : std::string(input.TakeRest());
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, "a/f", text);
  const auto read = SafetensorsFile::Open(*files, "a/f");
  if (!read.ok()) return Refused(read.status(), Code::kInvalidArgument);
  // The writer has fewer kinds of numbers than the form.
  static const std::set<std::string> kWritten = {"I64", "F32", "F16", "BF16", "U8"};
  std::vector<SafeTensor> tensors;
  std::vector<std::vector<std::byte>> contents;
  for (const SafetensorsFile::Entry& entry : (*read)->entries()) {
    std::vector<std::byte>& content = contents.emplace_back(entry.bytes);
    CHECK((*read)->Read(entry, 0, content).ok());
    tensors.push_back(entry.tensor);
    if (!kWritten.contains(entry.tensor.dtype)) return Verdict::kAccepted;
  }
  const std::vector<std::span<const std::byte>> spans(contents.begin(), contents.end());
  const Status written = WriteSafetensors(*files, "a/g", tensors, spans, {});
  CHECK(written.ok()) << written.message();
  const auto again = SafetensorsFile::Open(*files, "a/g");
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ((*again)->entries().size(), tensors.size());
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const std::string header :
       {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[8,12]},"__metadata__":{"k":"v"}})",
        R"({"k":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
        R"("e":{"dtype":"U8","shape":[0,3],"data_offsets":[8,8]},)"
        R"("x":{"dtype":"BOOL","shape":[4],"data_offsets":[8,12]}}  )"}) {
    const std::string data(12, 'd');
    seeds.push_back('\0' + BytesOf(uint64_t{header.size()}) + header + data);
    seeds.push_back('\1' + BytesOf(static_cast<uint16_t>(header.size())) + header + data);
  }
  return seeds;
}

const AddTarget safetensors({"safetensors", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
