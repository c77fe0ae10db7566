// Tests tables of other programs and countries: each is read, or refused with a remedy.
#include "tests/tools/prepare_kinds.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

// Returns a table of a number, a category and a label, with the number as `cell` writes it.
std::string Numbers(const std::function<std::string(uint64_t)>& cell, const char* delimiter = ",") {
  const std::string d = delimiter;
  return "x" + d + "c" + d + "y\n" +
         Repeated([&](uint64_t i) { return cell(i) + d + Word(i) + d + Bit(i); });
}

TEST(KindsTest, NumbersAreRead) {
  ExpectRead({
      {"points", Numbers(Tenths), kPlain},
      {"exponents", Numbers([](uint64_t i) { return std::to_string(i) + ".5e3"; }), kPlain},
      {"plus signs", Numbers([](uint64_t i) { return "+" + Tenths(i); }), kPlain},
      {"no digit before the point", Numbers([](uint64_t i) { return "." + std::to_string(i + 1); }),
       kPlain},
      {"no digit behind the point",
       Numbers([](uint64_t i) { return std::to_string(i * i % 50) + (i % 2 == 0 ? "." : ".5"); }),
       kPlain},
      {"a decimal comma beside semicolons",
       Numbers([](uint64_t i) { return std::to_string(i) + "," + std::to_string(1 + i % 9); }, ";"),
       kPlain, "data.decimal"},
      {"a decimal comma in quotes", Numbers([](uint64_t i) {
         return "\"" + std::to_string(i) + "," + std::to_string(1 + i % 9) + "\"";
       }),
       kPlain, "data.decimal"},
      {"NA of R", Numbers([](uint64_t i) { return i % 5 == 0 ? "NA" : Tenths(i); }), kPlain},
      {"NaN of pandas", Numbers([](uint64_t i) { return i % 5 == 0 ? "NaN" : Tenths(i); }), kPlain},
      {"\\N of Hive", Numbers([](uint64_t i) { return i % 5 == 0 ? "\\N" : Tenths(i); }), kPlain},
      {"#N/A of Excel", Numbers([](uint64_t i) { return i % 5 == 0 ? "#N/A" : Tenths(i); }),
       kPlain},
      {"empty cells", Numbers([](uint64_t i) { return i % 5 == 0 ? "" : Tenths(i); }), kPlain},
      {"hexadecimal ones are texts",
       Numbers([](uint64_t i) { return "0x" + std::to_string(i % 7); }),
       "csv: x categorical, c categorical, y label"},
      {"true and false", Numbers([](uint64_t i) { return i % 2 == 0 ? "true" : "false"; }),
       "csv: x categorical, c categorical, y label"},
  });
}

TEST(KindsTest, NumbersOfOtherWritingAreNamed) {
  ExpectRefused({
      {"thousands between commas",
       Numbers([](uint64_t i) { return "\"" + std::to_string(i + 1) + ",234\""; }),
       {"f:2: '1,234' in column 'x'", "thousands separator", "write 1234", "--categorical=x"}},
      {"thousands between points",
       Numbers([](uint64_t i) { return std::to_string(i + 1) + ".234,5"; }, ";"),
       {"f:2:", "thousands separator"}},
      {"thousands between apostrophes",
       Numbers([](uint64_t i) { return std::to_string(i + 1) + "'234"; }),
       {"thousands separator"}},
      {"percents",
       Numbers([](uint64_t i) { return Tenths(i) + "%"; }),
       {"f:2: '0.1%' in column 'x'", "percent sign", "write 0.45 for 45%"}},
      {"dollars", Numbers([](uint64_t i) { return "$" + Tenths(i); }), {"currency", "'$0.1'"}},
      {"euros", Numbers([](uint64_t i) { return Tenths(i) + " \xe2\x82\xac"; }), {"currency"}},
      {"infinities",
       Numbers([](uint64_t i) { return i % 7 == 3 ? "-Inf" : Tenths(i); }),
       {"f:5: '-Inf' in column 'x'", "infinite", "leave such cells empty"}},
      {"lists",
       Numbers([](uint64_t i) { return "\"[" + std::to_string(i % 4) + ", 2]\""; }),
       {"lists in brackets", "write 1|2|3"}},
  });
  DataWish wish;
  wish.categorical = {"x"};
  EXPECT_EQ(OutcomeOf(Numbers([](uint64_t i) { return Tenths(i % 4) + "%"; }), wish).read,
            "csv: x categorical, c categorical, y label");
}

TEST(KindsTest, DatesAreLeftOutAndNamed) {
  for (const char* year : {"2024-01-", "2024/1/"}) {
    const Outcome outcome =
        OutcomeOf(Numbers([year](uint64_t i) { return year + std::to_string(10 + i % 20); }));
    EXPECT_EQ(outcome.read, "csv: x skip, c categorical, y label");
    EXPECT_THAT(outcome.notes, HasSubstr("column 'x' has dates, and is left out"));
  }
  EXPECT_EQ(OutcomeOf(Numbers([](uint64_t i) {
              return "31/12/2024 0" + std::to_string(i % 9) + ":30";
            })).read,
            "csv: x skip, c categorical, y label");
}

TEST(KindsTest, HeadersAreRead) {
  const auto with_index = [](const std::string& header, const char* quote) {
    return header + "\n" + Repeated([&](uint64_t i) {
             const std::string q = quote;
             return q + std::to_string(i) + q + "," + Tenths(i) + "," + q + Word(i) + q + "," +
                    Bit(i);
           });
  };
  ExpectRead({
      {"plain", "x,c,y\n" + Rows(), kPlain},
      {"none", Rows(), "csv: column1 numeric, column2 categorical, column3 label"},
      {"a byte order mark", "\xef\xbb\xbfx,c,y\n" + Rows(), kPlain},
      {"lines that end with CR LF", "x,c,y\r\n" + Repeated([](uint64_t i) {
                                      return Tenths(i) + "," + Word(i) + "," + Bit(i) + "\r";
                                    }),
       kPlain},
      {"quotes", "\"x\",\"c\",\"y\"\n" + Rows(), kPlain},
      {"blanks around names", "x, c , y\n" + Rows(), kPlain},
      {"an index of pandas", with_index(",x,c,y", ""), kPlain, "column 1 has no name"},
      {"names of rows of R", with_index("\"\",\"x\",\"c\",\"y\"", "\""), kPlain,
       "column 1 has no name"},
      {"a delimiter behind the last cell", "x,c,y,\n" + Repeated([](uint64_t i) {
                                             return Tenths(i) + "," + Word(i) + "," + Bit(i) + ",";
                                           }),
       kPlain, "column 4 has no name"},
      {"numbers for names, as of pandas", "0,1,2\n" + Rows(),
       "csv: 0 numeric, 1 categorical, 2 label"},
      {"a name less than columns, as of R's write.table",
       "\"x\" \"c\" \"y\"\n" + Repeated([](uint64_t i) {
         return "\"" + std::to_string(i + 1) + "\" " + Tenths(i) + " \"" + Word(i) + "\" " + Bit(i);
       }),
       "csv: row_names skip, x numeric, c categorical, y label", "row_names"},
      {"a marked one, as of NumPy", "# x,c,y\n" + Rows(), kPlain},
      {"it comes again below, as of files put together", "x,c,y\n" + Rows() + "x,c,y\n" + Rows(),
       kPlain, "the header comes again below, in 1 line;"},
      {"capitals", "X,C,Y\n" + Rows(), "csv: X numeric, C categorical, Y label"},
  });
}

TEST(KindsTest, HeadersThatCannotBeReadAreNamed) {
  ExpectRefused({
      {"a name twice", "x,x,y\n" + Rows(), {"f:1:", "'x' stands twice", "as names 1 and 2"}},
      {"a line for Excel", "sep=,\nx,c,y\n" + Rows(), {"f:1:", "sep=", "sed 1d f"}},
      {"comments above",
       "# made by us\nx,c,y\n" + Rows(),
       {"f:1:", "comments stand above the header", "tail -n +2 f"}},
      {"Latin 1",
       "gr\xf6\xdf"
       "e,c,y\n" +
           Rows(),
       {"no UTF-8", "iconv -f LATIN1"}},
      {"several blanks between columns",
       "x    c   y\n" +
           Repeated([](uint64_t i) { return Tenths(i) + "    " + Word(i) + "   " + Bit(i); }),
       {"several blanks", "tr -s"}},
  });
  DataWish wish;
  wish.label = "y";
  EXPECT_THAT(OutcomeOf("y,1,x\n" + Rows(), wish).refused,
              ::testing::AllOf(HasSubstr("--label=y: there is no such column in f"),
                               HasSubstr("its first line has it, as cell 1"),
                               HasSubstr("'1' is a number")));
}

TEST(KindsTest, CellsBetweenAllThatIsUsual) {
  for (const char* delimiter : {",", "\t", ";", "|", "\x01", " "}) {
    const std::string d = delimiter;
    EXPECT_EQ(OutcomeOf("x" + d + "c" + d + "y\n" + Rows(delimiter)).read, kPlain) << delimiter;
  }
  // MovieLens: an empty column is between two colons.
  EXPECT_EQ(OutcomeOf(Repeated([](uint64_t i) {
              return Tenths(i) + "::" + Word(i) + "::" + Bit(i);
            })).read,
            "csv: column1 numeric, column2 skip, column3 categorical, column4 skip, column5 label");
  // A quote is an ordinary character.
  const std::string raw = Repeated([](uint64_t i) {
    return Bit(i) + "\t" + (i % 3 == 1 ? "\"inch\" screen " : "plain ") + Word(i) + "\t" +
           Tenths(i);
  });
  const Outcome outcome = OutcomeOf(raw);
  EXPECT_EQ(outcome.read, "csv: column1 label, column2 categorical, column3 numeric");
  EXPECT_THAT(outcome.notes, HasSubstr("quotes do not pair"));
  EXPECT_THAT(outcome.job, HasSubstr("\"quote\": \"\""));
  // Cells with delimiters inside, quoted by '.
  EXPECT_EQ(OutcomeOf(Repeated([](uint64_t i) {
              return Tenths(i) + ",'" + Word(i) + (i % 2 == 0 ? ",x'," : "',") + Bit(i);
            })).read,
            "csv: column1 numeric, column2 categorical, column3 label");
}

}  // namespace
}  // namespace hdps
