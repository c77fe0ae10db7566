// Tests that logged rows are read by the job as they were scored, whatever its format.
#include "tools/serve/watch/logged_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tests/tools/serve/watch/scripted_model.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/columnar/file_tables.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

Job JobOf(const std::string& data) {
  const Result<Job> job = ParseJob(R"({"name": "ctr", "data": {"train": ["t"], )" + data +
                                       R"(}, "model": {"type": "logistic", "device": "cpu"}})",
                                   "job.json", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A format: its job, the first line of its files if they have one, rows as they are sent, and what
// makes a row for training of a line of the log.
struct Format {
  std::string name, data, header;
  std::vector<std::string> rows;
  std::function<std::string(const std::string&)> join;
};

std::string Rest(int kept, const std::string& line) {
  size_t end = 0;
  for (int c = 0; c < kept; ++c) end = line.find('\t', end) + 1;
  return line.substr(0, end - 1);
}

std::string CriteoRow(int i) {
  std::string row;
  for (int n = 0; n < 13; ++n) row += (n % 5 == i % 5 ? "" : std::to_string(i * n)) + "\t";
  for (int c = 0; c < 26; ++c) {
    row += (c % 7 == i % 7 ? "" : "v" + std::to_string(i + c)) + std::string(c < 25 ? "\t" : "");
  }
  return row;
}

std::string CriteoHeader() {
  std::string names = "label";
  for (int n = 1; n <= 13; ++n) names += "\tI" + std::to_string(n);
  for (int c = 1; c <= 26; ++c) names += "\tC" + std::to_string(c);
  return names;
}

std::vector<Format> Formats() {
  const auto labelled = [](const std::string& line) { return "1" + line; };
  const auto entries = [](const std::string& line) { return "1 " + line; };
  return {
      {"csv",
       R"("header": true, "columns": [{"name": "y", "type": "label"}, {"name": "user"},
          {"name": "age", "type": "numeric", "transform": "log1p"},
          {"name": "tags", "type": "multi"}, {"name": "when", "type": "skip"},
          {"name": "u2", "from": "user"}])",
       "tags,age,user",  // Another order than the job's, and fewer columns.
       {"a|b,1.5,u1", ",,", "\"a, b|c\",-3,\"say \"\"hi\"\"\"", "x,1e3, blank "},
       labelled},
      {"csv with decimal commas, weights and no header",
       R"("delimiter": ";", "decimal": ",", "missing": "NA", "columns": [
          {"name": "y", "type": "label"}, {"name": "w", "type": "weight"}, {"name": "user"},
          {"name": "age", "type": "numeric"}])",
       "",
       {"u1;1,5", "NA;NA", "u;0,125"},
       // The reader takes the job's columns alone, so those of the log are cut.
       [](const std::string& line) {
         std::string cut = "1" + line;
         for (int c = 0; c < 5; ++c) cut.erase(cut.rfind(';'));
         return cut;
       }},
      {"criteo with a header",
       R"("format": "criteo", "header": true)",
       CriteoHeader(),
       {CriteoRow(3), CriteoRow(4)},
       [](const std::string& line) { return "1" + Rest(40, line); }},
      {"criteo",
       R"("format": "criteo")",
       "",
       {CriteoRow(1), CriteoRow(2), CriteoRow(9)},
       [](const std::string& line) { return "1" + Rest(40, line); }},
      {"libsvm", R"("format": "libsvm")", "", {"1:1 7:0.5", "3:2.25", "9:1 10:1 11:1"}, entries},
      {"libffm", R"("format": "libffm", "num_fields": 2)", "", {"0:1:1 1:7:0.5", "1:3:1"}, entries},
      {"libfm", R"("format": "libfm", "num_fields": 2)", "", {"1:1 7:0.5", "3:1 4:1"}, entries},
  };
}

class LoggedRowsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ColumnTable> TableOf(const Format& format, const Job& job) {
    std::string text = format.header.empty() ? "" : format.header + "\n";
    for (const std::string& row : format.rows) {
      // The rows of a file without names have all cells.
      const bool whole = format.name.starts_with("csv with");
      text += (whole ? "0;2;" : format.name.starts_with("criteo") ? "0\t" : "") + row + "\n";
    }
    WriteText(*files_, "sent", text);
    auto tables = FileTables::Open(*files_, job.data, {"sent"}, {});
    EXPECT_TRUE(tables.ok()) << tables.status().message();
    auto table = (*tables)->Next(100);
    EXPECT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ((*table)->num_rows(), format.rows.size());
    EXPECT_EQ(*(*tables)->Next(100), nullptr);
    return *table;
  }
  Batch Read(const Job& job, const std::string& path, bool labels) {
    ReaderOptions options;
    options.shuffle = false;
    options.labels = {{"", labels ? 2 : kLabelsNotRead}};
    auto reader = NewBatchReader(*files_, job.data, {path}, options);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    const std::vector<Batch> batches = ReadEpoch(**reader);
    EXPECT_EQ(batches.size(), 1u) << path;
    return batches.empty() ? Batch() : batches[0];
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(LoggedRowsTest, AreReadAsTheyWereSent) {
  for (const Format& format : Formats()) {
    SCOPED_TRACE(format.name);
    const Job job = JobOf(format.data);
    ASSERT_EQ(LoggedRows::WhyNot(job), "");
    const LoggedRows rows(job, 1);
    ScoreRequest request;
    request.rows = TableOf(format, job);
    request.id = "a7 \"x\"";
    std::vector<float> predictions(format.rows.size(), 0.1f);
    const LoggedRows::Lines lines = rows.Choose(request, AnswerOf(predictions), 1234);
    EXPECT_EQ(lines.rows, format.rows.size());
    EXPECT_EQ(lines.left_out, 0u);
    std::string joined = rows.Header();
    EXPECT_EQ(joined.empty(), format.header.empty()) << joined;
    for (const std::string& line : LinesOf(lines.text)) joined += format.join(line) + "\n";
    WriteText(*files_, "joined", joined);
    const Batch sent = Read(job, "sent", false), logged = Read(job, "joined", true);
    ASSERT_EQ(logged.num_examples, sent.num_examples) << joined;
    EXPECT_EQ(logged.labels, std::vector<float>(sent.num_examples, 1.0f));
    for (const float weight : logged.weights) EXPECT_EQ(weight, 1);
    ASSERT_EQ(logged.numeric, sent.numeric) << joined;
    ASSERT_EQ(logged.sparse.size(), sent.sparse.size());
    for (size_t f = 0; f < sent.sparse.size(); ++f) {
      EXPECT_EQ(logged.sparse[f].keys, sent.sparse[f].keys) << joined;
      EXPECT_EQ(logged.sparse[f].offsets, sent.sparse[f].offsets);
      EXPECT_EQ(logged.sparse[f].weights, sent.sparse[f].weights);
    }
  }
}

TEST_F(LoggedRowsTest, HaveTheScoresBehindThem) {
  const Format csv = Formats()[0];
  const LoggedRows rows(JobOf(csv.data), 1);
  ScoreRequest request;
  request.rows = TableOf(csv, JobOf(csv.data));
  request.id = "a,7";
  const std::string text = rows.Choose(request, AnswerOf({0.1f, 0.2f, 0.3f, 0.4f}), 1234).text;
  EXPECT_EQ(rows.Header(),
            "y,user,age,tags,when,hdps_id,hdps_row,hdps_time,hdps_step,hdps_score\n");
  EXPECT_EQ(LinesOf(text)[0], ",u1,1.5,a|b,,\"a,7\",0,1234,7,0.100000001");
  EXPECT_EQ(LinesOf(text)[1], ",,,,,\"a,7\",1,1234,7,0.200000003");

  const Format svm = Formats()[4];
  const LoggedRows entries(JobOf(svm.data), 1);
  request.rows = TableOf(svm, JobOf(svm.data));
  ScoreAnswer answer = AnswerOf({0.1f, 0.5f, 0.3f});
  answer.outputs[0].width = 1;
  EXPECT_EQ(LinesOf(entries.Choose(request, answer, 1234).text)[1],
            "3:2.25 # hdps_row=1 hdps_time=1234 hdps_step=7 hdps_score=0.5 hdps_id=a,7");
  // Nothing to train against: the request wanted other outputs alone.
  request.outputs = {ScoreOutput::kLogit};
  EXPECT_EQ(entries.Choose(request, answer, 1234).rows, 0u);
}

TEST_F(LoggedRowsTest, AShareIsTheSameRowsEachTime) {
  const Job job = JobOf(R"("columns": [{"name": "y", "type": "label"}, {"name": "user"}])");
  std::vector<std::string> users;
  for (int i = 0; i < 20'000; ++i) users.push_back("u" + std::to_string(i));
  const auto logged = [&](double share, size_t begin, size_t end) {
    ScoreRequest request;
    request.rows = TableOfTexts({"user"}, {{users.begin() + static_cast<int64_t>(begin),
                                            users.begin() + static_cast<int64_t>(end)}});
    std::vector<std::string> told;
    const auto lines =
        LoggedRows(job, share).Choose(request, AnswerOf(std::vector<float>(end - begin)), 1);
    for (const std::string& line : LinesOf(lines.text)) {
      told.push_back(line.substr(1, line.find(',', 1) - 1));
    }
    return told;
  };
  const std::vector<std::string> all = logged(0.1, 0, users.size());
  EXPECT_NEAR(static_cast<double>(all.size()), 2000, 5 * 43);  // sqrt(20000 * 0.1 * 0.9) = 42.4
  std::vector<std::string> parts = logged(0.1, 0, 77);
  for (const std::string& user : logged(0.1, 77, users.size())) parts.push_back(user);
  EXPECT_EQ(parts, all);
  EXPECT_EQ(logged(1, 0, users.size()), users);
  // A larger share has the rows of a smaller one.
  const std::vector<std::string> more = logged(0.3, 0, users.size());
  const std::set<std::string> of_more(more.begin(), more.end());
  for (const std::string& user : all) EXPECT_TRUE(of_more.contains(user)) << user;
}

TEST_F(LoggedRowsTest, NoCellMakesALineOfItsOwn) {
  const auto lines_of = [](const Job& job, const std::string& column, const std::string& cell,
                           const std::string& id) {
    ScoreRequest request;
    std::vector<std::string> names = {column};
    std::vector<std::vector<std::string>> cells = {{cell, "fine"}};
    for (const std::string& name : FeaturesOf(job.data).numeric) {
      names.push_back(name);
      cells.push_back({"", ""});
    }
    for (const std::string& name : FeaturesOf(job.data).sparse) {
      if (name == column) continue;
      names.push_back(name);
      cells.push_back({"", ""});
    }
    request.rows = TableOfTexts(names, cells);
    request.id = id;
    return LoggedRows(job, 1).Choose(request, AnswerOf({0, 0}), 1);
  };
  const Job csv = JobOf(R"("columns": [{"name": "y", "type": "label"}, {"name": "user"}])");
  EXPECT_EQ(lines_of(csv, "user", "a\n1,b", "").left_out, 1u);
  EXPECT_EQ(lines_of(csv, "user", "a,1", "").text, ",\"a,1\",,0,1,7,0\n,fine,,1,1,7,0\n");
  EXPECT_EQ(lines_of(csv, "user", "a", "x\ny").left_out, 2u);
  const Job criteo = JobOf(R"("format": "criteo")");
  EXPECT_EQ(lines_of(criteo, "C3", "a\tb", "").left_out, 1u);
  EXPECT_EQ(lines_of(criteo, "C3", "a", "").rows, 2u);
  const Job svm = JobOf(R"("format": "libsvm")");
  EXPECT_EQ(lines_of(svm, "row", "1:1\n1 2:2", "").left_out, 1u);
  const Job commented =
      JobOf(R"("comment": "//", "columns": [{"name": "user"}, {"name": "y", "type": "label"}])");
  EXPECT_EQ(lines_of(commented, "user", "//a", "").left_out, 1u);
  EXPECT_EQ(lines_of(commented, "user", "a//", "").rows, 2u);
}

TEST_F(LoggedRowsTest, LinesHaveABound) {
  const Job job = JobOf(R"("columns": [{"name": "y", "type": "label"}, {"name": "user"}])");
  constexpr size_t kRows = 100;
  ScoreRequest request;
  request.rows = TableOfTexts({"user"}, {std::vector<std::string>(kRows, "someone")});
  const LoggedRows rows(job, 1);
  const ScoreAnswer answer = AnswerOf(std::vector<float>(kRows, 0.5f));
  const LoggedRows::Lines all = rows.Choose(request, answer, 1);
  ASSERT_EQ(all.rows, kRows);
  const size_t bytes_max = all.text.size() / 2;
  const LoggedRows::Lines some = rows.Choose(request, answer, 1, bytes_max);
  EXPECT_LE(some.text.size(), bytes_max);
  EXPECT_EQ(some.text, all.text.substr(0, some.text.size()));
  EXPECT_EQ(some.rows, LinesOf(some.text).size());
  EXPECT_GT(some.rows, kRows / 3);
  EXPECT_EQ(some.rows + some.left_out, kRows);
}

TEST_F(LoggedRowsTest, SayWhyTheyCannotBe) {
  EXPECT_THAT(LoggedRows::WhyNot(
                  JobOf(R"("columns": [{"name": "y", "type": "label"}, {"name": "hdps_step"}])")),
              HasSubstr("the job has a column 'hdps_step'"));
}

}  // namespace
}  // namespace hdps
