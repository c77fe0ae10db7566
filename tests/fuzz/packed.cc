// Fuzzes gzip and zstd: compressed data comes back, damaged data gives an error and uses little
// memory.
#include <glog/logging.h>
#include <zlib.h>
#include <zstd.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "worker/data/compressed_file.h"

namespace hdps::fuzz {
namespace {

// ^A few bytes may expand to any size, so the test does not hold more at once.
constexpr size_t kUnpackedMax = size_t{8} << 20;

std::string Gzip(const std::string& text) {
  z_stream stream{};
  CHECK_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

Result<std::string> Unpack(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<UnpackedFile> file, OpenUnpacked(files, path));
  std::string text;
  std::string chunk(1000, '\0');
  while (text.size() < kUnpackedMax) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, file->Read(std::as_writable_bytes(std::span(chunk))));
    if (got == 0) break;
    text.append(chunk, 0, got);
  }
  return text;
}

// The first byte tells whether the rest is a compressed file, or text to compress twice in
// sequence, with one byte maybe changed.
Verdict Run(std::string_view bytes, const char* path, std::string (*pack)(const std::string&)) {
  Input input(bytes);
  const uint8_t how = input.Take();
  const size_t at = input.Take<uint16_t>();
  const std::string rest(input.TakeRest());
  std::string packed = how % 2 == 0 ? rest : pack(rest) + pack(rest);
  const bool sound = how % 4 == 1;
  if (how % 4 == 3) packed[at % packed.size()] ^= static_cast<char>(how);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PutFile(*files, path, packed);
  const Result<std::string> text = Unpack(*files, path);
  if (!text.ok()) {
    CHECK(!sound) << text.status().message();
    return Refused(text.status(), Code::kInvalidArgument);
  }
  if (sound) CHECK(*text == rest + rest);
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds(std::string (*pack)(const std::string&)) {
  const std::string text = "1,2,3\n1,2,3\n1,2,3\n4,5,6\n", nowhere(2, '\0');
  return {'\0' + nowhere + pack(text) + pack(text),
          '\0' + nowhere + pack(std::string(100'000, 'a')), '\1' + nowhere + text,
          '\7' + nowhere + text};
}

const AddTarget gzip({"gzip", [](std::string_view bytes) { return Run(bytes, "a.gz", Gzip); },
                      [] { return Seeds(Gzip); }});
const AddTarget zstd({"zstd", [](std::string_view bytes) { return Run(bytes, "a.zst", Zstd); },
                      [] { return Seeds(Zstd); }});

}  // namespace
}  // namespace hdps::fuzz
