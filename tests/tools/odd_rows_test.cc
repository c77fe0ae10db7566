// Tests hdps predict on files with odd rows: as many lines as rows, in their order, or a refusal.
#include <cmath>
#include <cstdio>
#include <utility>

#include "tests/tools/predict_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A data format, with rows that its job is trained on.
struct Format {
  std::string name;
  std::string data;                    // The job's section "data", without files.
  std::vector<std::string> rows;       // Good rows with labels; the first three have 1, 0, 1.
  char delimiter = ',';                // Between cells or entries.
  std::string comment = {};            // Lines with this beginning are not rows.
  std::vector<std::string> more = {};  // Odd rows of this format only.
};

std::string Criteo(int row) {
  std::string line = std::to_string(row % 2);
  for (int i = 0; i < 13; ++i) line += "\t" + std::to_string(row + i);
  for (int i = 0; i < 26; ++i) line += "\tc" + std::to_string(row * 26 + i);
  return line;
}

std::vector<Format> TextFormats() {
  const std::string columns =
      R"("comment": "#", "missing": "?", "columns": [{"name": "y", "type": "label"},
      {"name": "n", "type": "numeric"}, {"name": "c"}, 
      {"name": "m", "type": "multi", "separator": "/"},
      {"name": "w", "type": "weight"}, {"name": "g", "type": "group"}])";
  return {
      {"csv",
       R"("format": "csv", )" + columns,
       {"1,2,red,a/b,1,ann", "0,-3.5,blue,a,2,bob", "1,7,green,b/c,0.5,ann", "0,,,,1,"},
       ',',
       "#",
       {"1,\"2\",\"re\"\"d\",a,1,ann", "1,2,\"red,a,1,ann", "1,2,\"red\"dish,a,1,ann",
        "1,\"1,000\",red,a,1,ann", "1,2,red,a,heavy,ann", "1,2,red,a,-1,ann", "1,2,red,a,,",
        "no,2,red,a,1,ann", "y,n,c,m,w,g", "1,0x10,red,a,1,ann", "1,1e39,red,a,1,ann",
        "1,-1e400,red,a,1,ann", "1,\xd9\xa3,red,a,1,ann", "1,+2.0e0,red,a,1,ann"}},
      {"tsv",
       R"("format": "csv", "delimiter": "\t", )" + columns,
       {"1\t2\tred\ta/b\t1\tann", "0\t-3.5\tblue\ta\t2\tbob", "1\t7\tgreen\tb/c\t0.5\tann",
        "0\t\t\t\t1\t"},
       '\t',
       "#",
       {"1\t2\t\"red\ta\t1\tann", "1\tx\tred\ta\t1\tann", "1 2 red a 1 ann", "1\t2\tred"}},
      {"criteo",
       R"("format": "criteo")",
       {Criteo(1), Criteo(2), Criteo(3), Criteo(4)},
       '\t',
       "",
       {"label\tI1\tI2", Criteo(5) + "\tmore", "x" + Criteo(5).substr(1),
        Criteo(5).substr(0, Criteo(5).rfind('\t')), Criteo(5).substr(2)}},
      {"libsvm",
       R"("format": "libsvm")",
       {"1 1:1 2:0.5", "-1 2:1 3:1", "1 4:2.5 5:1 6:1", "0"},
       ' ',
       "",
       {"1 3:", "1 a:1", "1 -3:1", "3:1 5:1", "1 3:1 # note", "# note", "1 3 11", "1 3:nan",
        "1 3:1e39", "+1 3:1", "1 qid:2 3:1"}},
      {"libffm",
       R"("format": "libffm", "num_fields": 3)",
       {"1 0:1:1 1:2:0.5 2:3:1", "0 0:2:1 1:3:1", "1 0:4:1 1:4:2 2:4:1", "0 2:9:1"},
       ' ',
       "",
       {"1 3:7:1", "1 0:7", "1 0:7:x", "0:1:1 1:2:1 2:3:1", "1 -1:7:1", "1 0:7:1 9", "1 :7:1"}},
      {"libfm",
       R"("format": "libfm", "num_fields": 2)",
       {"1 1:1 10:1", "-1 2:1 11:1", "1 3:1 12:0.5", "0 1:1 12:1"},
       ' ',
       "",
       {"1 1:1", "1 1:1 10:1 5:1", "1:1 10:1", "10:1", "1 a:1 10:1", "1 1:x 10:1"}},
  };
}

// Returns what other programs, disks and people make of a row, for every format.
std::vector<std::pair<std::string, std::string>> OddRows(const Format& format) {
  const std::string good = format.rows[1], sep(1, format.delimiter);
  const size_t first = good.find(sep), last = good.rfind(sep);
  std::string many = good;
  for (int i = 0; i < 70'000; ++i) many += (sep == " " ? " 1:1" : "/v") + std::to_string(i);
  std::string semicolons = good;
  for (char& c : semicolons) c = c == format.delimiter ? ';' : c;
  std::vector<std::pair<std::string, std::string>> odd = {
      {"empty line", ""},
      {"blanks", " \t "},
      {"comment", "# " + good},
      {"without its last cell", good.substr(0, last)},
      {"without its label", good.substr(first + 1)},
      {"its label alone", good.substr(0, first)},
      {"a label and a delimiter", good.substr(0, first + 1)},
      {"empty label", good.substr(first)},
      {"label of another kind", "maybe" + good.substr(first)},
      {"label that is no number", "nan" + good.substr(first)},
      {"a cell more", good + sep + "more"},
      {"a delimiter more", good + sep},
      {"a delimiter in front", sep + good},
      {"two delimiters for one", good.substr(0, first) + sep + good.substr(first)},
      {"delimiters alone", std::string(5, format.delimiter)},
      {"two rows in one", good + good},
      {"two rows and a delimiter", good + sep + good},
      {"half a row", good.substr(0, good.size() / 2)},
      {"its end alone", good.substr(last + 1)},
      {"semicolons", semicolons},
      {"a byte of 0", good.substr(0, last + 1) + std::string(1, '\0') + good.substr(last + 1)},
      {"bytes of 0 alone", std::string(16, '\0')},
      {"bytes that are no UTF-8", good + "\xff\xfe\x80"},
      {"a byte order mark", "\xef\xbb\xbf" + good},
      {"a CR within", good.substr(0, first) + "\r" + good.substr(first)},
      {"CR LF", good + "\r"},
      {"two CRs", good + "\r\r"},
      {"a CR alone", "\r"},
      {"blanks in front", "  " + good},
      {"blanks behind", good + "  "},
      {"a tab behind", good + "\t"},
      {"in quotes", "\"" + good + "\""},
      {"a quote in front", "\"" + good},
      {"a quote behind", good + "\""},
      {"words", "total rows: 4"},
      {"JSON", "{\"y\": 1, \"n\": 2}"},
      {"a number", "12345678901234567890"},
      {"70,000 values", many},
      {"a line of 16 MiB", std::string(size_t{16} << 20, 'x')},
      {"a line of 17 MiB", std::string(size_t{17} << 20, 'x')},
  };
  for (size_t i = 0; i < format.more.size(); ++i) {
    odd.emplace_back("of its own " + std::to_string(i), format.more[i]);
  }
  return odd;
}

// Counts the rows of a file by the rules in docs/data.md, not by the reader.
size_t RowsOf(const std::string& text, const std::string& comment) {
  size_t rows = 0;
  std::istringstream lines(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!comment.empty() && line.starts_with(comment)) continue;
    ++rows;
  }
  return rows;
}

// Counts of rows read, lines written, and refusals.
struct Tally {
  size_t files = 0, rows = 0, lines = 0, refused = 0, nans = 0;
};

class OddRowsTest : public PredictTest {
 protected:
  using PredictTest::Train;
  void Train(const Format& format) {
    std::string text;
    for (int i = 0; i < 4; ++i) {
      for (const std::string& row : format.rows) text += row + "\n";
    }
    WriteText(*files_, format.name + ".train", text);
    Train(format.name, format.data + R"(, "train": [")" + format.name + R"(.train"])",
          R"("type": "logistic")");
  }

  // Checks `rows` with an odd one at `place`. `alone`: the line that each gets in a file of its
  // own; "" for the odd one unless it has a line there.
  void Check(const Format& format, const std::vector<std::string>& rows, size_t place,
             const std::vector<std::string>& alone, Tally* tally) {
    std::string text;
    for (size_t i = 0; i < rows.size(); ++i) text += rows[i] + (i + 1 < rows.size() ? "\n" : "");
    const size_t rows_in = RowsOf(text, format.comment);
    const bool odd_is_row = rows_in == rows.size();
    const Result<std::string> strict = Predict(format.name, text);
    const Result<std::string> lenient = Predict(format.name, text, /*nan=*/true);
    ++tally->files;
    tally->rows += rows_in;
    if (!strict.ok()) {
      EXPECT_THAT(strict.status().message(), HasSubstr("q:")) << "it names the place";
      ++tally->refused;
    } else {
      EXPECT_EQ(LinesOf(*strict).size(), rows_in);
      ASSERT_TRUE(lenient.ok());
      EXPECT_EQ(*strict, *lenient) << "there is nothing to be nan";
    }
    if (!lenient.ok()) return;
    const std::vector<std::string> lines = LinesOf(*lenient);
    ASSERT_EQ(lines.size(), rows_in);
    tally->lines += lines.size();
    size_t nans = 0;
    for (size_t i = 0, line = 0; i < rows.size(); ++i) {
      if (i == place && !odd_is_row) continue;
      const std::string& score = lines[line++];
      nans += score == "nan";
      if (i == place && score == "nan") continue;
      // Products of matrices with other heights may round differently.
      ASSERT_NE(alone[i], "") << "row " << i;
      EXPECT_NEAR(std::stod(score), std::stod(alone[i]), 1e-6) << "row " << i;
    }
    tally->nans += nans;
    EXPECT_EQ(nans == 0, strict.ok());
  }
};

TEST_F(OddRowsTest, LinesAreRowsOrARefusal) {
  for (const Format& format : TextFormats()) {
    Train(format);
    const auto line_of = [&](const std::string& row) {
      const Result<std::string> alone = Predict(format.name, row + "\n");
      return alone.ok() ? LinesOf(*alone).size() == 1 ? LinesOf(*alone)[0] : "" : "";
    };
    std::vector<std::string> scores;
    for (const std::string& row : format.rows) {
      scores.push_back(line_of(row));
      EXPECT_NE(scores.back(), "") << row;
      for (size_t other = 0; other + 1 < scores.size(); ++other) {
        EXPECT_GT(std::abs(std::stod(scores.back()) - std::stod(scores[other])), 1e-4)
            << "rows that can be told apart";
      }
    }
    Tally tally;
    const auto odd = OddRows(format);
    for (const auto& [kind, row] : odd) {
      SCOPED_TRACE(format.name + ": " + kind);
      const std::string odd_score = line_of(row);
      for (const size_t place : {size_t{0}, size_t{1}, format.rows.size()}) {
        SCOPED_TRACE("at place " + std::to_string(place));
        std::vector<std::string> rows = format.rows, alone = scores;
        rows.insert(rows.begin() + static_cast<ptrdiff_t>(place), row);
        alone.insert(alone.begin() + static_cast<ptrdiff_t>(place), odd_score);
        Check(format, rows, place, alone, &tally);
      }
    }
    std::printf(
        "figure: predict, %s: %zu kinds of odd rows at 3 places: %zu files, %zu rows; %zu "
        "files refused by place; with --bad_rows=nan %zu lines, %zu of them nan\n",
        format.name.c_str(), odd.size(), tally.files, tally.rows, tally.refused, tally.lines,
        tally.nans);
    EXPECT_GE(odd.size(), 40u);
  }
}

// Without labels the same rows give the same lines, in every format.
TEST_F(OddRowsTest, LabelsAreThereInAllRowsOfAFileOrInNone) {
  for (const Format& format : TextFormats()) {
    SCOPED_TRACE(format.name);
    Train(format);
    std::string with, without;
    for (size_t i = 0; i < 3; ++i) {
      const std::string& row = format.rows[i];
      with += row + "\n";
      without += row.substr(row.find(format.delimiter) + 1) + "\n";
    }
    const Result<std::string> lines = Predict(format.name, with);
    ASSERT_TRUE(lines.ok()) << lines.status().message();
    const Result<std::string> bare = Predict(format.name, without);
    ASSERT_TRUE(bare.ok()) << bare.status().message();
    EXPECT_EQ(*bare, *lines);
    EXPECT_THAT(Refused(format.name, without + with), HasSubstr("q:4:")) << "row 4 has a label";
    EXPECT_THAT(Refused(format.name, without.substr(0, without.find('\n') + 1) + with, true),
                AllOf(HasSubstr("q:2: "), HasSubstr("q:1"), HasSubstr("or in none")));
    EXPECT_THAT(Refused(format.name, with + without), HasSubstr("q:4:")) << "row 4 has none";
  }
}

}  // namespace
}  // namespace hdps
