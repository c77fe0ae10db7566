// Writes rows of each format, every 13th one bad.
#include "tests/worker/data/cache/cached_streams.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

constexpr int kRows = 300;

std::string Number(int number) { return std::to_string(number); }

std::string Lines(const std::string& head, const std::string& bad,
                  const std::function<std::string(int)>& row) {
  std::string text = head;
  for (int i = 0; i < kRows; ++i) {
    text += (i % 13 == 12 ? bad : row(i)) + (i % 50 == 7 ? "\r\n\n" : "\n");
  }
  return text;
}

ColumnSpec Column(const std::string& name, ColumnType type) {
  ColumnSpec column;
  column.name = name;
  column.type = type;
  return column;
}

// Every kind of column and of derived feature, and lines of very different lengths.
FormatCase Csv() {
  FormatCase csv{.name = "csv", .data = {}, .text = ""};
  DataSpec& data = csv.data;
  data.header = true;
  data.comment = "#";
  data.columns = {Column("y", ColumnType::kLabel),       Column("n", ColumnType::kNumeric),
                  Column("m", ColumnType::kNumeric),     Column("user", ColumnType::kCategorical),
                  Column("tags", ColumnType::kMulti),    Column("w", ColumnType::kWeight),
                  Column("session", ColumnType::kGroup), Column("id", ColumnType::kCategorical)};
  data.columns[0].positive = {"yes"};
  data.columns[1].transform = Transform::kLog1p;
  data.columns[7].vocab_size = 40;
  data.features = {Bucketized("bucket", "n", {1, 10, 50}),
                   Crossed("cross", {"bucket", "user"}, 97)};
  csv.text = Lines("user,y,n,m,tags,w,session,id\n# no row\n", "u1,yes,what,,a,1,s1,3", [](int i) {
    std::string tags;
    for (int t = 0; t < i % 4; ++t) tags += (t > 0 ? "|t" : "t") + Number(i * t);
    if (i % 29 == 0) tags += std::string(static_cast<size_t>(i) * 3, 'x');
    return "u" + Number(i % 17) + (i % 3 == 0 ? ",yes," : ",no,") + Number(i) + "," +
           (i % 5 == 0 ? "" : Number(i) + ".25") + "," + tags + "," + Number(i % 4) + ".5,s" +
           Number(i / 4) + "," + Number(i % 60);
  });
  return csv;
}

FormatCase Tasks() {
  FormatCase tasks{.name = "tasks", .data = {}, .text = "", .labels = {{"a", 2}, {"b", 1}}};
  tasks.data.columns = {Column("a", ColumnType::kLabel), Column("b", ColumnType::kLabel),
                        Column("color", ColumnType::kCategorical)};
  tasks.text = Lines("", "2,1,red", [](int i) {
    return Number(i % 2) + "," + Number(i) + ".5,c" + Number(i % 7);
  });
  return tasks;
}

FormatCase Criteo() {
  FormatCase criteo{.name = "criteo", .data = {}, .text = ""};
  criteo.data.format = DataFormat::kCriteo;
  criteo.text = Lines("", "1\tx", [](int i) {
    std::string text = Number(i % 2);
    for (int c = 0; c < 39; ++c) text += "\t" + (c % 7 == i % 7 ? "" : Number(i * c % 101));
    return text;
  });
  return criteo;
}

FormatCase Entries(DataFormat format) {
  FormatCase entries{.name = std::string(WordOf(format)), .data = {}, .text = ""};
  entries.data.format = format;
  entries.data.num_fields = 3;
  entries.text = Lines("", "1 what", [=](int i) {
    std::string text = Number(i % 2);
    for (int f = 0; f < 3; ++f) {
      const int count = format == DataFormat::kLibfm ? 1 : (i + f) % 3;
      for (int k = 0; k < count; ++k) {
        text += " ";
        if (format == DataFormat::kLibffm) text += Number(f) + ":";
        text += Number(i * 7 % 31 + k) + (i % 5 == 0 ? ":0.5" : ":1");
      }
    }
    return text;
  });
  return entries;
}

}  // namespace

std::vector<FormatCase> FormatCases() {
  std::vector<FormatCase> cases = {Csv(),
                                   Tasks(),
                                   Criteo(),
                                   Entries(DataFormat::kLibsvm),
                                   Entries(DataFormat::kLibffm),
                                   Entries(DataFormat::kLibfm)};
  for (FormatCase& format : cases) {
    format.data.max_bad_rows = kRows;
    format.data.shuffle_rows = 40;
  }
  return cases;
}

EpochRead ReadOneEpoch(BatchReader& reader, uint32_t epoch, uint64_t skip_steps) {
  EpochRead read;
  read.batches = ReadEpoch(reader, epoch, skip_steps);
  read.bad_rows = reader.bad_rows();
  return read;
}

void ExpectSame(const EpochRead& one, const EpochRead& other) {
  EXPECT_EQ(one.bad_rows, other.bad_rows);
  ExpectSame(one.batches, other.batches);
}

RowCacheOptions MuchMemory(const std::string& folder) {
  return {.cache = DataCache::kAuto, .folder = folder, .memory_max = uint64_t{1} << 30};
}

RowCacheOptions OnDisk(const std::string& folder) {
  return {.cache = DataCache::kDisk, .folder = folder, .memory_max = uint64_t{1} << 30};
}

}  // namespace hdps
