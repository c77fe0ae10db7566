// The words of data files: their formats, the kinds of their columns, the transforms of numbers.
#pragma once

#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

enum class DataFormat : uint8_t {
  kCsv,
  kCriteo,
  kLibsvm,
  kLibffm,
  kLibfm,
  kIdx,
  kParquet,
  kTfrecord,
  kJsonl,
};
constexpr auto WordsOf(DataFormat) {
  using enum DataFormat;
  return EnumWords(kCsv, "csv", kCriteo, "criteo", kLibsvm, "libsvm", kLibffm, "libffm", kLibfm,
                   "libfm", kIdx, "idx", kParquet, "parquet", kTfrecord, "tfrecord", kJsonl,
                   "jsonl");
}
// Is true if rows are records whose cells have names and types of their own.
constexpr bool HasTypedCells(DataFormat format) {
  return format == DataFormat::kParquet || format == DataFormat::kTfrecord ||
         format == DataFormat::kJsonl;
}
// Is true if rows are records of cells that data.columns names.
constexpr bool HasNamedColumns(DataFormat format) {
  return format == DataFormat::kCsv || HasTypedCells(format);
}
enum class ColumnType : uint8_t { kLabel, kNumeric, kCategorical, kMulti, kSkip, kWeight, kGroup };
constexpr auto WordsOf(ColumnType) {
  using enum ColumnType;
  return EnumWords(kLabel, "label", kNumeric, "numeric", kCategorical, "categorical", kMulti,
                   "multi", kSkip, "skip", kWeight, "weight", kGroup, "group");
}
// Tells where parsed rows are kept for later passes over the same data. kAuto: in memory where they
// fit, else on disk, if they are read more than once.
enum class DataCache : uint8_t { kAuto, kMemory, kDisk, kNone };
constexpr auto WordsOf(DataCache) {
  using enum DataCache;
  return EnumWords(kAuto, "auto", kMemory, "memory", kDisk, "disk", kNone, "none");
}
enum class Transform : uint8_t { kNone, kLog1p, kStandardize };  // log1p: sign(x) log(1 + |x|).
constexpr auto WordsOf(Transform) {
  using enum Transform;
  return EnumWords(kNone, "none", kLog1p, "log1p", kStandardize, "standardize");
}

}  // namespace hdps
