// Lists the first bytes of kinds of files, each with a remedy.
#include "tools/prepare/layout/foreign_file.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/shell_word.h"
#include "worker/data/compressed_file.h"

namespace hdps {
namespace {

using namespace std::string_view_literals;

constexpr size_t kLooked = 4096;

struct ForeignFile {
  std::string_view bytes, what, mend;  // FILE in `mend` is replaced by the path.
  // The bytes may also begin a text; only a text has no zero bytes.
  bool with_zeros = false;
};

constexpr std::string_view kPandas =
    "write it as csv, as with python3 -c 'import pandas, sys; "
    "pandas.READ(sys.argv[1]).to_csv(sys.argv[2], index=False)' FILE rows.csv";

constexpr ForeignFile kForeign[] = {
    {"BZh91AY"sv, "packed by bzip2", "unpack it with bzip2 -dk FILE, or pack it with gzip or zstd"},
    {"\xfd"
     "7zXZ\0"sv,
     "packed by xz", "unpack it with xz -dk FILE, or pack it with gzip or zstd"},
    {"7z\xbc\xaf\x27\x1c"sv, "an archive of 7-Zip", "unpack it with 7z x FILE"},
    {"Rar!"sv, "an archive of RAR", "unpack it with unrar x FILE", true},
    {"\x04\x22\x4d\x18"sv, "packed by lz4", "unpack it with lz4 -d FILE"},
    {"ARROW1"sv, "Arrow's or Feather's columns", "read_feather"},
    {"FEA1"sv, "Feather's columns", "read_feather"},
    {"ORC"sv, "ORC", "read_orc", true},
    {"\x89HDF"sv, "HDF5", "read_hdf"},
    {"Obj\x01"sv, "Avro", "write its records as csv"},
    {"\x93NUMPY"sv, "an array of NumPy",
     "write it as csv, as with python3 -c 'import numpy, sys; numpy.savetxt(sys.argv[2], "
     "numpy.load(sys.argv[1]), delimiter=\",\")' FILE rows.csv"},
    {"\x80\x03"sv, "a pickle of Python", "read_pickle"},
    {"\x80\x04"sv, "a pickle of Python", "read_pickle"},
    {"\x80\x05"sv, "a pickle of Python", "read_pickle"},
    {"RDX3\n"sv, "R's workspace",
     "write it as csv with R's write.csv(rows, FILE, row.names = FALSE)"},
    {"X\n\0\0\0"sv, "R's saved object",
     "write it as csv with R's write.csv(readRDS(FILE), \"rows.csv\", row.names = FALSE)"},
    {"SQLite format 3"sv, "a database of SQLite",
     "write a table as csv: sqlite3 -header -csv FILE 'select * from TABLE' > rows.csv"},
    {"\xd0\xcf\x11\xe0"sv, "a workbook of Excel", "save the sheet as CSV UTF-8"},
    {"\xff\xfe"sv, "text in UTF-16, as Excel writes Unicode text",
     "convert it with iconv -f UTF-16 -t UTF-8 FILE > rows.tsv"},
    {"\xfe\xff"sv, "text in UTF-16, as Excel writes Unicode text",
     "convert it with iconv -f UTF-16 -t UTF-8 FILE > rows.tsv"},
    {"\0\0\x08"sv, "images or labels of the format idx",
     "write a job with \"format\": \"idx\"; hdps generate --kind=digits --format=idx shows one"},
    {"<?xml"sv, "XML", "write its records as csv"},
    {"<html"sv, "a page of HTML", "look whether the download went wrong"},
    {"<!DOCTYPE"sv, "a page of HTML", "look whether the download went wrong"},
    {"<!doctype"sv, "a page of HTML", "look whether the download went wrong"},
    {"{\""sv, "JSON", "read_json"},
    {"[{"sv, "JSON", "read_json"},
    {"PK\x03\x04"sv, "an archive of zip, or a workbook of Excel",
     "unpack it with unzip FILE; of a workbook save the sheet as CSV UTF-8"},
};

std::string Replaced(std::string text, std::string_view from, const std::string& to) {
  const size_t at = text.find(from);
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

Status Refused(const std::string& path, std::string_view what, std::string_view mend) {
  const std::string how = mend.starts_with("read_")
                              ? Replaced(std::string(kPandas), "READ", std::string(mend))
                              : std::string(mend);
  return {Code::kInvalidArgument,
          path + ": this file is " + std::string(what) +
              ", which is not read: " + Replaced(how, "FILE", ShellWord(path))};
}

Result<std::string> Beginning(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<UnpackedFile> file, OpenUnpacked(files, path));
  std::string bytes(kLooked, '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const std::span<char> room(bytes.data() + got, bytes.size() - got);
    HDPS_ASSIGN_OR_RETURN(const size_t here, file->Read(std::as_writable_bytes(room)));
    if (here == 0) break;
    got += here;
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

Status CheckIsText(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const std::string bytes, Beginning(files, path));
  for (const ForeignFile& foreign : kForeign) {
    if (foreign.with_zeros && bytes.find('\0') == bytes.npos) continue;
    if (bytes.starts_with(foreign.bytes)) return Refused(path, foreign.what, foreign.mend);
  }
  if (std::ranges::count(bytes, '\0') * 4 > static_cast<std::ptrdiff_t>(bytes.size())) {
    return Refused(path, "text in UTF-16, or bytes that are no text",
                   "convert text with iconv -f UTF-16LE -t UTF-8 FILE > rows.csv");
  }
  if (bytes.find('\0') != bytes.npos) {
    return Refused(path, "no text: it has bytes of 0", "write its rows as csv");
  }
  const bool one_line = bytes.find('\n') == bytes.npos;
  if (one_line && std::ranges::count(bytes.substr(0, bytes.find_last_not_of('\r') + 1), '\r') > 0) {
    return Refused(path, "text whose lines end with CR alone, as old Macs wrote it",
                   "convert it with tr '\\r' '\\n' < FILE > rows.csv");
  }
  std::string front = bytes.substr(0, bytes.find('\n'));
  std::ranges::transform(front, front.begin(), [](unsigned char c) { return std::tolower(c); });
  if (front.starts_with("@relation") || bytes.find("\n@attribute") != bytes.npos ||
      bytes.find("\n@ATTRIBUTE") != bytes.npos) {
    return Refused(path, "Weka's ARFF",
                   "take the rows behind @data: sed '1,/^@data/Id' FILE > rows.csv");
  }
  return {};
}

}  // namespace hdps
