// Tests hdps predict on files in memory: what a row is, which cells a file may lack, what is
// written.
#include <cstdio>
#include <utility>

#include "tests/tools/predict_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPlainColumns =
    R"("train": ["t"], "columns": [{"name": "y", "type": "label"}, {"name": "user"},
       {"name": "age", "type": "numeric"}, {"name": "item"}])";

TEST_F(PredictTest, ARowOfAnotherNumberOfCellsIsABadRow) {
  WriteText(*files_, "t", "1,a,1,c\n0,b,2,d\n1,a,3,c\n0,b,4,d\n");
  Train("run", kPlainColumns, R"("type": "logistic")");
  const std::string good = *Predict("run", "1,a,1,c\n0,b,2,d\n");
  EXPECT_THAT(Refused("run", "1,a,1,c\n0,3,d\n0,b,2,d\n"), HasSubstr("q:2:5: 'd'"));
  EXPECT_EQ(*Predict("run", "1,a,1,c\n0,3,d\n0,b,2,d\n", true),
            LinesOf(good)[0] + "\nnan\n" + LinesOf(good)[1] + "\n");
  EXPECT_EQ(*Predict("run", "a,1,c\nb,2,d\n"), good);
  EXPECT_EQ(*Predict("run", "0,b,2,d\n1,a,1,c\n"),
            LinesOf(good)[1] + "\n" + LinesOf(good)[0] + "\n");
  // A first row that is short itself does not mislead.
  EXPECT_THAT(Refused("run", "a,1,c\n0,b,2,d\n0,b,2,d\n", true),
              HasSubstr("q:2: this row has 4 cells, and q:1 has 3"));
  EXPECT_THAT(Refused("run", "0,b,2,d\na,1,c\na,1,c\n", true), HasSubstr("q:3: this row has 3"));
  // Each file separately.
  WriteText(*files_, "p", "a,1,c\nb,2,d\n");
  CommonFlags flags = FlagsOf("run");
  flags.data = "p,q";
  WriteText(*files_, "q", "0,b,2,d\n");
  std::ostringstream nothing;
  ASSERT_TRUE(RunPredict(flags, *files_, *executor_, nothing).ok());
  EXPECT_EQ(*ReadWholeFile(*files_, "scores", 1000), good + LinesOf(good)[1] + "\n");
}

// Cells of weights and groups may have any text, or be missing.
TEST_F(PredictTest, WeightsAndGroupsAreNotLookedAt) {
  WriteText(*files_, "t", "1,5,a,1,ann\n0,6,b,2,bob\n1,7,a,1,ann\n0,8,b,3,bob\n");
  Train("run",
        R"("train": ["t"], "columns": [{"name": "y", "type": "label"},
           {"name": "n", "type": "numeric"}, {"name": "c"}, {"name": "w", "type": "weight"},
           {"name": "g", "type": "group"}])",
        R"("type": "logistic")");
  const std::string good = *Predict("run", "1,5,a,1,ann\n0,6,b,2,bob\n");
  for (const char* const text :
       {",5,a,,\n,6,b,,\n", "x,5,a,heavy,\n?,6,b,-7,\n", "5,a\n6,b\n", "5,a,1,ann\n6,b,2,bob\n"}) {
    EXPECT_EQ(*Predict("run", text), good) << text;
  }
  EXPECT_THAT(Refused("run", "1,5,a\n0,6,b\n"), HasSubstr("q:1:")) << "two may be left out of five";
}

// A group whose cell is also a feature is required.
TEST_F(PredictTest, ACellThatIsAFeatureTooIsNotLeftOut) {
  WriteText(*files_, "t", "1,5,ann\n0,6,bob\n1,7,ann\n0,8,bob\n");
  Train("run",
        R"("train": ["t"], "columns": [{"name": "y", "type": "label"},
           {"name": "n", "type": "numeric"}, {"name": "g", "type": "group"},
           {"name": "user", "from": "g"}])",
        R"("type": "logistic")");
  EXPECT_EQ(*Predict("run", "5,ann\n6,bob\n"), *Predict("run", "1,5,ann\n0,6,bob\n"));
  EXPECT_THAT(Refused("run", "5\n6\n"), HasSubstr("q:1:"));
}

TEST_F(PredictTest, HeadersNameWhatIsThere) {
  WriteText(*files_, "t", "y,a,b,c,w\n1,a,1,c,1\n0,b,2,d,1\n1,a,3,c,1\n0,b,4,d,1\n");
  Train(
      "run",
      R"("header": true, "train": ["t"], "columns": [{"name": "y", "type": "label"}, {"name": "a"},
           {"name": "b", "type": "numeric"}, {"name": "c"}, {"name": "w", "type": "weight"}])",
      R"("type": "logistic")");
  const std::string good = *Predict("run", "y,a,b,c,w\n1,a,1,c,1\n0,b,2,d,1\n");
  EXPECT_EQ(*Predict("run", "c,b,a\nc,1,a\nd,2,b\n"), good);
  EXPECT_EQ(*Predict("run", "a,w,b,c\na,x,1,c\nb,,2,d\n"), good);
  EXPECT_THAT(Refused("run", "c,b,a\nc,1,a\nd,2\n"), HasSubstr("q:3:"));
  EXPECT_THAT(Refused("run", "y,a,b,c,w\n1,a,1,c,1\na,1,c,1\n"), HasSubstr("q:3:"));
  EXPECT_THAT(Refused("run", "1,a,1,c,1\n0,b,2,d,1\n"), HasSubstr("q:1:"));
  // A header without the setting has no line.
  WriteText(*files_, "t", "1,a,1,c\n0,b,2,d\n");
  Train("bare", kPlainColumns, R"("type": "logistic")");
  EXPECT_THAT(Refused("bare", "y,user,age,item\n1,a,1,c\n", true),
              HasSubstr("q:1: this line is a header"));
}

TEST_F(PredictTest, TheTrainingsBadRowsDoNotCount) {
  WriteText(*files_, "t", "1,a,1,c\n0,b,2,d\n1,a,x,c\n0,b,y,d\n");
  Train("run", std::string(R"("max_bad_rows": 60, )") + kPlainColumns, R"("type": "logistic")");
  EXPECT_THAT(Refused("run", "1,a,1,c\n1,a,x,c\n0,b,2,d\n"),
              AllOf(HasSubstr("q:2:5: 'x'"), HasSubstr("--bad_rows=nan")));
  EXPECT_EQ(LinesOf(*Predict("run", "1,a,1,c\n1,a,x,c\n0,b,2,d\n", true))[1], "nan");
}

// Each additional worker takes a part of each batch.
TEST_F(PredictTest, WorkersKeepTheOrder) {
  WriteText(*files_, "t", "1,a,1,c\n0,b,2,d\n1,a,3,c\n0,b,4,d\n");
  Train("run", kPlainColumns, R"("type": "wide_deep", "embedding_dim": 4, "hidden": [4])");
  std::string text;
  for (int i = 0; i < 5000; ++i) text += i % 7 == 3 ? "bad\n" : "0,a," + std::to_string(i) + ",c\n";
  const Result<std::string> one = Predict("run", text, true);
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(LinesOf(*one).size(), 5000u);
  CommonFlags flags = FlagsOf("run", true);
  flags.workers = 3;
  std::ostringstream nothing;
  ASSERT_TRUE(RunPredict(flags, *files_, *executor_, nothing).ok());
  const std::vector<std::string> lines = LinesOf(*one);
  const std::vector<std::string> of_three = LinesOf(*ReadWholeFile(*files_, "scores", 1u << 20));
  ASSERT_EQ(of_three.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(of_three[i] == "nan", lines[i] == "nan") << i;
    if (lines[i] == "nan") continue;
    EXPECT_NEAR(std::stod(of_three[i]), std::stod(lines[i]), 1e-6) << i;
  }
}

// No input is overwritten, however it is spelled; not even by the temporary file.
TEST_F(PredictTest, NothingThatIsReadIsWrittenOver) {
  WriteText(*files_, "t", "1,a,1,c\n0,b,2,d\n");
  Train("run", kPlainColumns, R"("type": "logistic")");
  WriteText(*files_, "q", "1,a,1,c\n");
  WriteText(*files_, "x.tmp", "1,a,1,c\n");
  WriteText(*files_, "job.json", "{}");
  for (const auto& [out, data] :
       {std::pair("q", "q"), std::pair("./run/../q", "q"), std::pair("q", "x.tmp,q"),
        std::pair("x", "x.tmp"), std::pair("run/checkpoint/step_0000000002/manifest.json", "q")}) {
    CommonFlags flags = FlagsOf("run");
    flags.out = out;
    flags.data = data;
    std::ostringstream nothing;
    const Status status = RunPredict(flags, *files_, *executor_, nothing);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << out;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("--out="), HasSubstr("written over"))) << out;
  }
  EXPECT_EQ(*ReadWholeFile(*files_, "q", 1000), "1,a,1,c\n");
  EXPECT_EQ(*ReadWholeFile(*files_, "x.tmp", 1000), "1,a,1,c\n");
}

TEST_F(PredictTest, NamesOfFilesMayHaveCommas) {
  WriteText(*files_, "t", "1,a,1,c\n0,b,2,d\n");
  Train("run", kPlainColumns, R"("type": "logistic")");
  WriteText(*files_, "a,b", "1,a,1,c\n");
  WriteText(*files_, "c", "0,b,2,d\n0,b,2,d\n");
  for (const auto& [data, rows] : {std::pair("a,b", 1u), std::pair("\"a,b\",c", 3u),
                                   std::pair("c,\"a,b\"", 3u), std::pair("c,c", 4u)}) {
    CommonFlags flags = FlagsOf("run");
    flags.data = data;
    std::ostringstream nothing;
    const Status status = RunPredict(flags, *files_, *executor_, nothing);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(LinesOf(*ReadWholeFile(*files_, "scores", 1000)).size(), rows) << data;
  }
}

std::string IdxHead(uint32_t count, std::string lengths) {
  std::string head = {0, 0, 8, static_cast<char>(1 + lengths.size())};
  head += std::string(3, '\0') + static_cast<char>(count);
  for (const char length : lengths) head += std::string(3, '\0') + length;
  return head;
}

// Images of 2 x 2 pixels, in intact and damaged files.
TEST_F(PredictTest, ImagesAreRowsOrARefusal) {
  const std::string pixels = "abcdefghijkl", head = IdxHead(3, "\2\2");
  WriteText(*files_, "t-images", head + pixels);
  WriteText(*files_, "t-labels", IdxHead(3, "") + std::string("\1\0\1", 3));
  Train("run", R"("format": "idx", "image_shape": [2, 2], "train": ["t-images"])",
        R"("type": "mlp", "hidden": [4], "classes": 2)");
  const std::string good = *Predict("run", head + pixels);
  ASSERT_EQ(LinesOf(good).size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(*Predict("run", IdxHead(1, "\2\2") + pixels.substr(4 * i, 4)),
              LinesOf(good)[i] + "\n");
  }
  EXPECT_EQ(*Predict("run", IdxHead(0, "\2\2")), "");
  size_t files = 0, lines = 0, refused = 0;
  const auto check = [&](std::string text) {
    ++files;
    for (const bool nan : {false, true}) {
      const Result<std::string> found = Predict("run", text, nan);
      const auto announced = static_cast<size_t>(text.size() > 7 ? text[7] : 0);
      if (!found.ok()) {
        ++refused;
        continue;
      }
      EXPECT_EQ(LinesOf(*found).size(), announced);
      lines += announced;
    }
  };
  const std::string whole = head + pixels;
  for (size_t cut = 0; cut < whole.size(); ++cut) check(whole.substr(0, cut));
  for (size_t at = 0; at < head.size(); ++at) {
    for (const char byte : {'\0', '\1', '\3', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      check(changed);
    }
  }
  for (const char* const more : {"x", "\n", "abcd"}) check(whole + more);
  std::printf(
      "figure: predict, idx: %zu files with other bytes, cut or longer: %zu refusals, %zu "
      "lines, as many as images\n",
      files, refused, lines);
  EXPECT_GE(files, 40u);
}

}  // namespace
}  // namespace hdps
