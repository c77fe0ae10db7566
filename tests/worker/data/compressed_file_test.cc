// Tests that compressed files read as the original bytes, and damaged ones are refused.
#include "worker/data/compressed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// Compresses like zstd with a pipe as input, whose length it does not know.
std::string ZstdStream(const std::string& text, ZSTD_cParameter parameter, int value) {
  ZSTD_CCtx* const stream = ZSTD_createCCtx();
  EXPECT_FALSE(ZSTD_isError(ZSTD_CCtx_setParameter(stream, parameter, value)));
  std::string packed(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer in = {text.data(), text.size(), 0};
  ZSTD_outBuffer out = {packed.data(), packed.size(), 0};
  EXPECT_FALSE(ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_continue)));
  EXPECT_EQ(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(stream);
  packed.resize(out.pos);
  return packed;
}

std::string Noise(size_t bytes) {
  Random random(bytes);
  std::string text;
  while (text.size() < bytes) text += "0123456789abcdef\n"[random.Below(17)];
  return text;
}

Result<std::string> ReadAll(FileSystem& files, const std::string& path, size_t piece) {
  HDPS_ASSIGN_OR_RETURN(const auto file, OpenUnpacked(files, path));
  std::string text;
  std::vector<std::byte> buffer(piece);
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, file->Read(buffer));
    if (got == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer.data()), got);
  }
}

TEST(CompressedFileTest, GivesBackWhatWasPacked) {
  const auto files = NewMemoryFileSystem();
  for (size_t bytes : {0u, 1u, 3u, 4u, 5u, 70000u, 900000u}) {
    const std::string text = Noise(bytes);
    const std::string more = Noise(bytes / 2 + 1);
    WriteText(*files, "plain", text);
    WriteText(*files, "one.gz", Gzip(text));
    WriteText(*files, "two.gz", Gzip(text) + Gzip(more));
    WriteText(*files, "one.zst", Zstd(text));
    WriteText(*files, "two.zst", Zstd(text) + Zstd(more));
    WriteText(*files, "unnamed", Gzip(text));
    for (size_t piece : {size_t{1000}, size_t{1} << 20}) {
      EXPECT_TRUE(*ReadAll(*files, "plain", piece) == text) << bytes;
      EXPECT_TRUE(*ReadAll(*files, "one.gz", piece) == text) << bytes;
      EXPECT_TRUE(*ReadAll(*files, "two.gz", piece) == text + more) << bytes;
      EXPECT_TRUE(*ReadAll(*files, "one.zst", piece) == text) << bytes;
      EXPECT_TRUE(*ReadAll(*files, "two.zst", piece) == text + more) << bytes;
      EXPECT_TRUE(*ReadAll(*files, "unnamed", piece) == text) << bytes;
    }
  }
}

// Like gzip: tapes and copies of whole blocks end with zeros. Further members are read, and other
// bytes behind a member are an error.
TEST(CompressedFileTest, ZerosBehindGzipAreNothing) {
  const auto files = NewMemoryFileSystem();
  const std::string text = Noise(1000), member = Gzip(text);
  for (const size_t zeros : {size_t{1}, size_t{511}, size_t{3} << 20}) {
    for (const std::string& packed : {member, member + member}) {
      WriteText(*files, "t.gz", packed + std::string(zeros, '\0'));
      for (const size_t piece : {size_t{7}, size_t{1} << 16}) {
        EXPECT_EQ(*ReadAll(*files, "t.gz", piece), packed == member ? text : text + text);
      }
    }
  }
  for (const std::string& behind : {std::string(5, '\0') + "x", std::string(5, '\0') + member,
                                    std::string("x"), std::string(300'000, '\0') + "x"}) {
    WriteText(*files, "t.gz", member + behind);
    EXPECT_EQ(ReadAll(*files, "t.gz", 1 << 16).status().code(), Code::kInvalidArgument);
  }
}

TEST(CompressedFileTest, ACutFileIsRefusedByName) {
  const auto files = NewMemoryFileSystem();
  const std::string text = Noise(5000);
  for (const auto& [name, packed] :
       {std::pair<std::string, std::string>{"log.gz", Gzip(text)}, {"log.zst", Zstd(text)}}) {
    for (size_t bytes = 4; bytes < packed.size(); bytes += 97) {
      WriteText(*files, name, packed.substr(0, bytes));
      const Result<std::string> read = ReadAll(*files, name, 1 << 16);
      ASSERT_EQ(read.status().code(), Code::kInvalidArgument) << name << " cut at " << bytes;
      EXPECT_THAT(read.status().message(), HasSubstr(name));
    }
  }
}

TEST(CompressedFileTest, ChangedBytesNeverPassForOthers) {
  const auto files = NewMemoryFileSystem();
  const std::string text = Noise(3000);
  const std::string packed = Gzip(text);
  for (size_t at = 10; at < packed.size(); at += 13) {
    std::string changed = packed;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    WriteText(*files, "log.gz", changed);
    const Result<std::string> read = ReadAll(*files, "log.gz", 1 << 16);
    if (read.ok()) {
      EXPECT_TRUE(*read == text) << at;
    } else {
      EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
    }
  }
}

// A frame's first bytes tell how much output must be kept in memory.
TEST(CompressedFileTest, ZstdsWindowsAreThoseOfItsLevelsUpTo19) {
  const auto files = NewMemoryFileSystem();
  const std::string text = Noise(20000);
  for (const int level : {1, 3, 19}) {
    WriteText(*files, "log.zst", ZstdStream(text, ZSTD_c_compressionLevel, level));
    const Result<std::string> read = ReadAll(*files, "log.zst", 1 << 16);
    ASSERT_TRUE(read.ok()) << level << ": " << read.status().message();
    EXPECT_TRUE(*read == text) << level;
  }
  // --ultra -22, --long=24, --long, and the largest window that a frame can ask for.
  const std::string bomb("\x28\xb5\x2f\xfd\x00\xff", 6);
  for (const std::string& packed :
       {ZstdStream(text, ZSTD_c_compressionLevel, 22), ZstdStream(text, ZSTD_c_windowLog, 24),
        ZstdStream(text, ZSTD_c_windowLog, 27), bomb + text}) {
    WriteText(*files, "log.zst", packed);
    const Result<std::string> read = ReadAll(*files, "log.zst", 1 << 16);
    ASSERT_EQ(read.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(read.status().message(),
                AllOf(HasSubstr("'log.zst'"), HasSubstr("more than 8 MiB"),
                      HasSubstr("pack it again without --long and --ultra")));
  }
}

TEST(CompressedFileTest, ANameAloneMakesNoPackedFile) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "log.gz", "0\t1\n");
  EXPECT_EQ(OpenUnpacked(*files, "log.gz").status().code(), Code::kInvalidArgument);
  WriteText(*files, "log.zst", "");
  EXPECT_EQ(OpenUnpacked(*files, "log.zst").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(OpenUnpacked(*files, "gone").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hdps
