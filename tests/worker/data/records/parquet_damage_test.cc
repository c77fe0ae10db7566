// Tests that Parquet files which are damaged or do not fit the job are named, with what is wrong
// and what helps, and that no damage ends the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/records/record_fixture.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Bytes behind the footer: its length and the magic bytes.
constexpr size_t kTailBytes = 8;

size_t FooterBytes(const std::string& file) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, file.data() + file.size() - kTailBytes, sizeof(bytes));
  return bytes;
}

std::string WithFooterBytes(std::string file, uint32_t bytes) {
  std::memcpy(file.data() + file.size() - kTailBytes, &bytes, sizeof(bytes));
  return file;
}

std::string With(std::string file, size_t at, const std::string& bytes) {
  return file.replace(at, bytes.size(), bytes);
}

std::string Flipped(std::string file, size_t at) {
  file[at] = static_cast<char>(~file[at]);
  return file;
}

// Returns why the job cannot read these files; empty if it can.
std::string Problem(FileSystem& files, const Job& job, std::vector<std::string> paths) {
  Job of_paths = job;
  of_paths.data.train = std::move(paths);
  return ReadTwoEpochs(files, of_paths.data, {.batch_size = 64, .shuffle = false}).problem;
}

struct Damage {
  const char* name;
  std::function<std::string(const std::string&)> damaged;  // Makes the file from a whole one.
  const char* message;                                     // A part of the error.
};

constexpr const char* kNoParquet = ": this is no Parquet file: its first bytes are '";
constexpr const char* kCutOff =
    ": this Parquet file is cut off: its last bytes are not 'PAR1'; expected a whole one";
constexpr const char* kUnreadable = ": this Parquet file cannot be read: expected a whole one (";
constexpr const char* kPages = ": reading the Parquet file from this row on failed (";

std::vector<Damage> Damages() {
  using Bytes = const std::string&;
  return {
      {"empty", [](Bytes) { return ""; }, kNoParquet},
      {"of_3_bytes", [](Bytes f) { return f.substr(0, 3); }, kNoParquet},
      {"magic_alone", [](Bytes f) { return f.substr(0, 4); }, kCutOff},
      {"of_11_bytes", [](Bytes f) { return f.substr(0, 11); }, kCutOff},
      {"of_12_bytes", [](Bytes f) { return f.substr(0, 4) + f.substr(f.size() - 8); }, kUnreadable},
      {"cut_in_half", [](Bytes f) { return f.substr(0, f.size() / 2); }, kCutOff},
      {"cut_by_a_byte", [](Bytes f) { return f.substr(0, f.size() - 1); }, kCutOff},
      {"cut_before_the_footer",
       [](Bytes f) { return f.substr(0, f.size() - kTailBytes - FooterBytes(f)); }, kCutOff},
      {"with_a_newline_behind", [](Bytes f) { return f + "\n"; }, kCutOff},
      {"without_its_first_bytes", [](Bytes f) { return f.substr(4); }, kNoParquet},
      {"text", [](Bytes) { return "click,user\n1,2\n"; }, ": this is no Parquet file: its first "},
      {"packed_by_gzip", [](Bytes f) { return "\x1f\x8b\x08" + f; }, kNoParquet},
      {"footer_too_long", [](Bytes f) { return WithFooterBytes(f, 0x7fffffff); }, kUnreadable},
      {"footer_of_any_length", [](Bytes f) { return WithFooterBytes(f, 0xffffffff); }, kUnreadable},
      {"footer_as_long_as_the_file",
       [](Bytes f) { return WithFooterBytes(f, static_cast<uint32_t>(f.size())); }, kUnreadable},
      {"no_footer", [](Bytes f) { return WithFooterBytes(f, 0); }, kUnreadable},
      {"footer_of_half_its_length",
       [](Bytes f) { return WithFooterBytes(f, static_cast<uint32_t>(FooterBytes(f) / 2)); },
       kUnreadable},
      {"footer_that_begins_with_zeros",
       [](Bytes f) {
         return With(f, f.size() - kTailBytes - FooterBytes(f), std::string(16, '\0'));
       },
       kUnreadable},
      {"footer_of_ones",
       [](Bytes f) {
         return With(f, f.size() - kTailBytes - FooterBytes(f),
                     std::string(FooterBytes(f), '\xff'));
       },
       kUnreadable},
      {"encrypted_footer", [](Bytes f) { return With(f, 0, "PARE"); }, " is encrypted: expected "},
      {"first_page_overwritten", [](Bytes f) { return With(f, 4, std::string(360, '\x5a')); },
       kPages},
      {"pages_of_zeros",
       [](Bytes f) {
         return With(f, 4, std::string(f.size() - kTailBytes - FooterBytes(f) - 4, '\0'));
       },
       kPages},
      {"bytes_cut_out_of_its_pages", [](Bytes f) { return std::string(f).erase(100, 2000); }, ""},
      {"bytes_put_into_its_pages",
       [](Bytes f) { return std::string(f).insert(100, std::string(2000, 'x')); }, kPages},
  };
}

TEST(ParquetDamageTest, DamagedFilesAreNamed) {
  const auto files = NewMemoryFileSystem();
  const std::string whole = BytesOfRecordFile("rows.parquet");
  const Job job = RowsJob(R"(, "max_bad_rows": 1000)");
  for (const Damage& damage : Damages()) {
    SCOPED_TRACE(damage.name);
    WriteText(*files, damage.name, damage.damaged(whole));
    EXPECT_THAT(Problem(*files, job, {damage.name}),
                AllOf(StartsWith(damage.name), HasSubstr(damage.message), HasSubstr("expected ")));
  }
}

TEST(ParquetDamageTest, AChecksumTellsOfOneWrongBit) {
  const auto files = NewMemoryFileSystem();
  const std::string whole = BytesOfRecordFile("rle-dict-snappy-checksum.parquet");
  const Job job = NumbersJob({"long_field"});
  WriteText(*files, "whole", whole);
  EXPECT_EQ(Problem(*files, job, {"whole"}), "");
  // The chunk of the column, by the file's footer: two pages with their headers.
  constexpr size_t kBegin = 4, kEnd = 61;
  for (size_t at = kBegin; at < kEnd; ++at) {
    WriteText(*files, "flipped", Flipped(whole, at));
    EXPECT_THAT(Problem(*files, job, {"flipped"}), StartsWith("flipped:1: reading")) << at;
  }
}

TEST(ParquetDamageTest, AnyDamageIsRowsOrAnError) {
  const auto files = NewMemoryFileSystem();
  Random random(11);
  for (const char* const name : {"rows.parquet", "rows_other_types.parquet"}) {
    const std::string bytes = BytesOfRecordFile(name);
    int refused = 0;
    for (int trial = 0; trial < 150; ++trial) {
      std::string damaged = bytes;
      for (uint64_t change = 0; change <= random.Below(4); ++change) {
        damaged[4 + random.Below(bytes.size() - 8)] = static_cast<char>(random.Below(256));
      }
      WriteText(*files, "damaged", damaged);
      refused += !Problem(*files, RowsJob(R"(, "max_bad_rows": 1000)"), {"damaged"}).empty();
    }
    EXPECT_GT(refused, 20);  // Few bytes of a page may change unseen: the writer kept no checksums.
  }
}

}  // namespace
}  // namespace hdps
