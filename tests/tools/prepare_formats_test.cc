// Tests entries, labels, encodings and archives of other programs: each is read, or refused with a
// remedy.
#include "common/base/hash.h"
#include "common/base/shell_word.h"
#include "tests/tools/prepare_kinds.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

TEST(FormatsTest, EntriesAreRead) {
  const auto svm = [](const std::string& yes, const std::string& no, const std::string& rest) {
    return Repeated([&](uint64_t i) {
      return (i % 3 == 0 ? yes : no) + " " + std::to_string(1 + i % 7) + ":1" +
             (i % 2 == 0 ? " 90:0.5" : "") + rest;
    });
  };
  const char* const kSvm = "libsvm: label label, features categorical";
  const char* const kFfm = "libffm: label label, field0 categorical, field1 categorical";
  ExpectRead({
      {"libsvm, +1 and -1", svm("+1", "-1", ""), kSvm},
      {"libsvm, 1 and 0", svm("1", "0", ""), kSvm},
      {"labels with a point, as of scikit-learn", svm("1.0", "0.0", ""), kSvm},
      {"remarks behind the entries", svm("1", "0", " # a row"), kSvm},
      {"indexes from 0",
       Repeated([](uint64_t i) { return Bit(i) + " 0:1" + (i % 2 == 0 ? " 5:2" : ""); }), kSvm},
      {"indexes that fall",
       Repeated([](uint64_t i) { return Bit(i) + " 9:1" + (i % 2 == 0 ? " 5:2" : ""); }), kSvm},
      {"values with exponents",
       Repeated([](uint64_t i) { return Bit(i) + " 3:1e-3" + (i % 2 == 0 ? " 5:-2E+1" : ""); }),
       kSvm},
      {"tabs between entries",
       Repeated([](uint64_t i) { return Bit(i) + "\t3:1" + (i % 2 == 0 ? "\t5:2" : ""); }), kSvm},
      {"indexes without values", Repeated([](uint64_t i) {
         return Bit(i) + " 3" + (i % 2 == 0 ? " 5" : "") + (i % 5 == 0 ? " 7" : "");
       }),
       kSvm},
      {"libsvm between commas",
       Repeated([](uint64_t i) { return Bit(i) + ",3:1" + (i % 2 == 0 ? ",5:2" : ""); }), kSvm},
      {"libffm", Repeated([](uint64_t i) {
         return Bit(i) + " 0:" + std::to_string(i % 7) + ":1 1:" + std::to_string(50 + i % 3) +
                ":1";
       }),
       kFfm},
      {"libffm between commas, as xLearn takes it", Repeated([](uint64_t i) {
         return Bit(i) + ",0:" + std::to_string(i % 7) + ":1,1:" + std::to_string(50 + i % 3) +
                ":1";
       }),
       kFfm},
      {"libffm between commas and blanks", Repeated([](uint64_t i) {
         return Bit(i) + ", 0:" + std::to_string(i % 7) + ":1, 1:" + std::to_string(50 + i % 3) +
                ":1";
       }),
       kFfm},
  });
}

TEST(FormatsTest, EntriesOfOtherFormatsAreNamed) {
  ExpectRefused({
      {"queries",
       Repeated([](uint64_t i) { return Bit(i) + " qid:1 3:1 5:" + Bit(i); }),
       {"f:1:", "queries (qid)", "sed"}},
      {"several labels",
       Repeated([](uint64_t i) { return "1,3 2:0.5 7:" + Bit(i); }),
       {"f:1:", "several labels a row"}},
      {"no labels",
       Repeated([](uint64_t i) { return "0:" + std::to_string(i % 7) + ":1 1:9:1"; }),
       {"f:1:", "without a label", "sed 's/^/0 /'"}},
      {"Vowpal Wabbit",
       Repeated([](uint64_t i) { return Bit(i) + " |user age:3 b |item c" + Word(i); }),
       {"f:1:", "Vowpal Wabbit", "csv with a column a namespace"}},
      {"Vowpal Wabbit, with tags",
       Repeated([](uint64_t i) { return Bit(i) + " 2.0 'row |f a:3 b" + Word(i); }),
       {"Vowpal Wabbit"}},
      {"texts for indexes",
       Repeated([](uint64_t i) { return Bit(i) + " age:3 size:" + Tenths(i); }),
       {"f:1:", "whose index or field is a text"}},
      {"names and numbers, as of Paddle",
       Repeated(
           [](uint64_t i) { return "idx:" + Bit(i) + " value:" + Tenths(i) + " label:" + Bit(i); }),
       {"f:1:", "numbers with names", "csv with a column a name"}},
      {"remarks on lines of their own",
       "# made by us\n" + Repeated([](uint64_t i) { return Bit(i) + " 3:1 5:" + Tenths(i); }),
       {"f:1:", "a line of remarks", "grep -v '^#' f"}},
      {"labels 1 and 2",
       Repeated([](uint64_t i) {
         return std::string(i % 3 == 0 ? "2" : "1") + " 3:1" + (i % 2 == 0 ? " 5:2" : "");
       }),
       {"label 'label' is '1', '2'", "awk"}},
  });
}

TEST(FormatsTest, LabelsInOtherClothes) {
  const auto table = [](const std::string& yes, const std::string& no) {
    return "x,c,y\n" + Repeated([&](uint64_t i) {
             return Tenths(i) + "," + Word(i) + "," + (i % 3 == 0 ? yes : no);
           });
  };
  for (const auto& [yes, no] :
       std::vector<std::pair<std::string, std::string>>{{"yes", "no"},
                                                        {"Y", "N"},
                                                        {"t", "f"},
                                                        {"TRUE", "FALSE"},
                                                        {"True", "False"},
                                                        {">50K.", "<=50K."},
                                                        {"click", "noclick"},
                                                        {"pos", "neg"}}) {
    EXPECT_EQ(OutcomeOf(table(yes, no)).read, std::string(kPlain) + " " + yes);
  }
  for (const auto& [yes, no] : std::vector<std::pair<std::string, std::string>>{
           {"1", "0"}, {"+1", "-1"}, {"1.0", "0.0"}, {"\"1\"", "\"0\""}, {"1e0", "0"}}) {
    EXPECT_EQ(OutcomeOf(table(yes, no)).read, kPlain) << yes;
  }
  // Some rows are written in one way, and some in another.
  EXPECT_EQ(OutcomeOf("x,c,y\n" + Repeated([](uint64_t i) {
                        return Tenths(i) + "," + Word(i) + "," + Bit(i) + (i % 2 == 0 ? ".0" : "");
                      }))
                .read,
            kPlain);
  const Outcome codes = OutcomeOf(table("1", "2"));
  EXPECT_EQ(codes.read, std::string(kPlain) + " 2");
  EXPECT_THAT(codes.notes, HasSubstr("'2' is taken for 1; --positive=\"=TEXT\" says otherwise"));
}

TEST(FormatsTest, FilesThatAreNoTextOfRowsAreNamed) {
  const std::string zeros(40, '\0');
  ExpectRefused({
      {"zip", "PK\x03\x04" + zeros, {"f: this file is an archive of zip", "unzip f"}},
      {"bzip2", "BZh91AY&SY" + zeros, {"bzip2", "bzip2 -dk f"}},
      {"xz",
       std::string("\xfd"
                   "7zXZ\0",
                   6) +
           zeros,
       {"xz -dk f"}},
      {"7-Zip", "7z\xbc\xaf\x27\x1c" + zeros, {"7-Zip"}},
      {"lz4", "\x04\x22\x4d\x18" + zeros, {"lz4 -d f"}},
      {"Feather", "ARROW1" + zeros, {"pandas.read_feather"}},
      {"ORC", "ORC" + zeros, {"pandas.read_orc"}},
      {"HDF5", "\x89HDF\r\n\x1a\n" + zeros, {"HDF5"}},
      {"Avro", "Obj\x01" + zeros, {"Avro"}},
      {"NumPy", "\x93NUMPY" + zeros, {"numpy.savetxt"}},
      {"pickle", "\x80\x04" + zeros, {"pandas.read_pickle"}},
      {"R", std::string("X\n\0\0\0\2", 6) + zeros, {"readRDS"}},
      {"SQLite", "SQLite format 3" + zeros, {"sqlite3 -header -csv f"}},
      {"an old workbook", "\xd0\xcf\x11\xe0" + zeros, {"Excel", "CSV UTF-8"}},
      {"UTF-16",
       std::string("\xff\xfe"
                   "a\0\t\0b\0\n\0",
                   10),
       {"UTF-16", "iconv -f UTF-16 -t UTF-8 f"}},
      {"UTF-16 without a mark", std::string("a\0,\0b\0\n\0", 8), {"UTF-16"}},
      {"JSON", "[{\"a\": 1},\n{\"a\": 2}]\n", {"JSON", "pandas.read_json"}},
      {"XML", "<?xml version='1.0'?>\n<rows/>\n", {"XML"}},
      {"HTML", "<!DOCTYPE html>\n", {"HTML", "download"}},
      {"ARFF", "@relation a\n@attribute x numeric\n@data\n1\n", {"ARFF", "@data"}},
      {"images", std::string("\0\0\x08\x03", 4) + zeros, {"idx"}},
      {"lines that end with CR", "x,c,y\r1,a,0\r2,b,1\r", {"CR alone", "tr '\\r'"}},
      {"bytes of 0", std::string("x,c,y\n1,a\0,0\n2,b,1\n3,b,1\n", 25), {"bytes of 0"}},
      {"prose", "It was a dark night.\nNobody was there\nat all\n", {"expected rows of csv"}},
  });
}

TEST(FormatsTest, RowsAreNotThrownAwayUnasked) {
  const auto table = [](uint64_t bad, uint64_t rows) {
    return "x,c,y\n" + Repeated(
                           [=](uint64_t i) {
                             return i < bad ? Tenths(i) + ",a"
                                            : Tenths(i) + "," + Word(i) + "," + Bit(i);
                           },
                           rows);
  };
  EXPECT_THAT(
      OutcomeOf(table(3, 200)).refused,
      ::testing::AllOf(HasSubstr("f:2: 2 cells where there should be 3"),
                       HasSubstr("3 such rows of 200, 1.5%"), HasSubstr("--max_bad_rows=3")));
  DataWish wish;
  wish.max_bad_rows = 3;
  EXPECT_THAT(OutcomeOf(table(3, 200), wish).job, HasSubstr("\"max_bad_rows\": 3"));
  wish.max_bad_rows = 2;
  EXPECT_EQ(OutcomeOf(table(3, 200), wish).read, "");
  const Outcome few = OutcomeOf(table(2, 200));
  EXPECT_THAT(few.job, HasSubstr("\"max_bad_rows\": 2"));
  EXPECT_THAT(few.notes, HasSubstr("2 rows have another number of cells; the first: f:2"));
  // Without a label.
  EXPECT_THAT(OutcomeOf("x,c,y\n" + Repeated([](uint64_t i) {
                          return Tenths(i) + "," + Word(i) + "," + (i == 7 ? "" : Bit(i));
                        }))
                  .refused,
              ::testing::AllOf(HasSubstr("f:9: no label"), HasSubstr("--max_bad_rows=1")));
  // Quotes escaped by a backslash, as Spark writes them, and cells that span lines.
  EXPECT_THAT(OutcomeOf("x,c,y\n" + Repeated([](uint64_t i) {
                          return Tenths(i) + "," + (i % 4 == 0 ? "\"a \\\"b\\\", c\"" : Word(i)) +
                                 "," + Bit(i);
                        }))
                  .refused,
              ::testing::AllOf(HasSubstr("f:2:"), HasSubstr("write quotes inside a cell twice")));
}

// A file with any bytes is read or refused.
TEST(FormatsTest, NothingCrashes) {
  const std::string texts[] = {
      "x,c,y\n" + Repeated([](uint64_t i) { return Tenths(i) + "," + Word(i) + "," + Bit(i); }, 9),
      ",user;item,\"y\"\n" + Rows(";"),
      "# a b\n1 2\n3 4\n",
      "1 0:7:1 1:9:1\n0,0:7:1\n",
      "user,item,rating\n1,2,3\n1,3,5\n2,2,1,\n",
      "1|2|3\n|1|\n$5,1%,\"[1,2]\"\n"};
  const char bytes[] = "\n\r\t\0 ,;|:#\"'%$+-.eE019ay?\xff\xe2";
  uint64_t read = 0;
  for (uint64_t trial = 0; trial < 3000; ++trial) {
    std::string text = texts[trial % std::size(texts)];
    for (uint64_t change = 0; change <= trial % 7; ++change) {
      const uint64_t draw = MixBits(trial * 8 + change);
      text[draw % text.size()] = bytes[(draw >> 32) % std::size(bytes)];
    }
    const auto files = NewMemoryFileSystem();
    WriteText(*files, "f", text);
    const auto layout = TellLayout(*files, "f");
    if (!layout.ok()) continue;
    const auto profile = ProfileData(*files, *layout, {"f"}, {});
    if (!profile.ok()) continue;
    DataWish wish;
    wish.max_bad_rows = 1000;
    if (trial % 3 == 0) wish.task = static_cast<TaskKind>(trial % 4);
    if (trial % 5 == 0) wish.positive = trial % 2 == 0 ? ">=3" : "1|a";
    const auto plan = PlanData(*profile, nullptr, wish);
    if (!plan.ok()) continue;
    ++read;
    EXPECT_NE(PrepareReport(*profile, *plan, {}), "");
  }
  EXPECT_GT(read, 100u);
}

TEST(FormatsTest, WhatIsPrintedCanBePasted) {
  EXPECT_EQ(ShellWord("out/job.json"), "out/job.json");
  EXPECT_EQ(ShellWord("my data/job.json"), "'my data/job.json'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace hdps
