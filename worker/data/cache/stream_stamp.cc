// Prints the settings that rows depend on, and looks at their files.
#include "worker/data/cache/stream_stamp.h"

#include <algorithm>
#include <string_view>

#include "common/base/hash.h"
#include "common/base/outside_text.h"
#include "common/job/job_file.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/file_identity.h"
#include "worker/data/batch_reader.h"
#include "worker/data/idx_file.h"

namespace hdps {
namespace {

// Changes whenever a parser gives other rows for the same text and settings.
constexpr uint64_t kParsersVersion = 1;

std::string Hex(uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i > 0; --i, number >>= 4) text[i - 1] = kDigits[number & 15];
  return text;
}

// Hashes all settings of the data but those that change no row. So a setting that is added later
// counts, unless it is named here.
uint64_t HashSettings(DataSpec data, const ReaderOptions& options, CachedForm form) {
  const DataSpec plain;
  data.train = data.eval = {};
  data.eval_sets = {};
  data.item_features = {};
  data.negatives = {};
  data.distinct = data.distinct_half = {};
  data.parts = {};
  data.shuffle_rows = plain.shuffle_rows;
  data.max_bad_rows = plain.max_bad_rows;
  data.cache = plain.cache;
  data.cache_path = {};
  data.cache_share = plain.cache_share;
  if (options.side == RowSide::kAll) {
    data.validation_share = 0;
    data.validation_block_lines = 0;
  }
  std::string text = PrintData(data);
  const uint64_t seed = data.validation_share > 0 ? options.seed : 0;
  for (const uint64_t number :
       {kParsersVersion, static_cast<uint64_t>(form), static_cast<uint64_t>(options.side), seed}) {
    text += '\n' + std::to_string(number);
  }
  for (const LabelSpec& label : options.LabelsWanted()) {
    text += '\n' + std::to_string(label.num_classes) + ' ' + label.name;
  }
  return HashString(text);
}

// Returns the path by which all jobs know the file. Errors: a pipe or a device, whose rows pass
// once.
Result<std::string> OwnPath(FileSystem& files, const std::string& path) {
  const Result<FileIdentity> identity = IdentityOf(files, path);
  if (!identity.ok()) return path;
  if (identity->plain) return identity->path;
  return Status(Code::kNotFound, path + " is no file");
}

Status AddFile(FileSystem& files, const std::string& path, std::string* text) {
  HDPS_ASSIGN_OR_RETURN(const FileStamp file, files.StampOf(path));
  *text += '\n' + std::to_string(file.bytes) + ' ' + std::to_string(file.changed_ns) + ' ' +
           EscapeUntrusted(path);
  return {};
}

// Takes the first line off.
std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

}  // namespace

Result<StreamStamp> StampOfStream(FileSystem& files, const DataSpec& data,
                                  const std::vector<std::string>& paths, const ReaderOptions& given,
                                  CachedForm form) {
  ReaderOptions options = given;
  if (data.validation_share == 0) options.side = RowSide::kAll;
  constexpr const char* kSides[] = {"all", "train", "validation"};
  StreamStamp stamp;
  uint64_t name = 0;
  stamp.text = "settings " + Hex(HashSettings(data, options, form));
  for (const std::string& given_path : paths) {
    HDPS_ASSIGN_OR_RETURN(const std::string path, OwnPath(files, given_path));
    HDPS_RETURN_IF_ERROR(AddFile(files, path, &stamp.text));
    const std::string labels = data.format == DataFormat::kIdx ? LabelsPathOf(path) : "";
    if (!labels.empty()) HDPS_RETURN_IF_ERROR(AddFile(files, labels, &stamp.text));
    name = HashString(path, name);
  }
  stamp.name = kSides[static_cast<size_t>(options.side)] +
               std::string(form == CachedForm::kBase ? "-base-" : "-") + Hex(name) + ".rows";
  return stamp;
}

std::string WhatDiffers(const std::string& other_text, const std::string& wanted_text) {
  std::string_view other = other_text, wanted = wanted_text;
  if (TakeLine(&other) != TakeLine(&wanted)) return "the settings of the data are others now";
  while (!wanted.empty()) {
    std::string_view file = TakeLine(&wanted);
    if (TakeLine(&other) == file) continue;
    for (int i = 0; i < 2; ++i) file.remove_prefix(std::min(file.find(' '), file.size() - 1) + 1);
    return std::string(file) + " has changed since";
  }
  return "the files of the data are others now";
}

}  // namespace hdps
