// Tests reports about data files: each change once, and the files as an epoch has opened them.
#include "worker/role/data_report.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataReportTest : public testing::Test {
 protected:
  DataReportTest() {
    job_.data.train = {"train.csv"};
    job_.data.format = DataFormat::kCsv;
    job_.data.columns.emplace_back().name = "y";
    job_.data.columns[0].type = ColumnType::kLabel;
    Write("train.csv", "0\n1\n");
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(*files_, path, text).ok());
  }

  Job job_;
  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(DataReportTest, ChangesOfAllFilesAreTakenOnceInTheirOrder) {
  Write("eval.csv", "1\n");
  const EvalSet set{"eval", {"eval.csv"}};
  DataReport report(job_, *files_);
  report.LookAtTraining("A");
  report.LookAtEvalSet(set, "B");
  EXPECT_EQ(report.TakeChanges(), "") << "the first look";
  Write("train.csv", "0\n1\n0\n");
  Write("eval.csv", "1\n1\n");
  report.LookAtTraining("A");
  report.LookAtEvalSet(set, "B");
  const std::string changes = report.TakeChanges();
  EXPECT_THAT(changes, AllOf(HasSubstr("train.csv had 4 bytes and has 6 bytes now: A; "),
                             HasSubstr("eval.csv had 2 bytes and has 4 bytes now: B")));
  EXPECT_LT(changes.find("train.csv"), changes.find("eval.csv"));
  report.LookAtTraining("A");
  report.LookAtEvalSet(set, "B");
  EXPECT_EQ(report.TakeChanges(), "");
}

TEST_F(DataReportTest, WhatWasOpenedStaysWhatItWasThen) {
  DataReport report(job_, *files_);
  EXPECT_TRUE(report.opened().empty());
  report.MarkOpened();
  const std::vector<FilePrint> opened = report.opened();
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0].bytes, 4u);
  Write("train.csv", "0\n1\n0\n");
  EXPECT_EQ(report.opened(), opened);
  EXPECT_EQ(report.TrainingPrints()[0].bytes, 6u);
}

TEST_F(DataReportTest, RowsOfAnEpochAreCountedOnce) {
  DataReport report(job_, *files_);
  EXPECT_EQ(*report.RowsOfEpoch(), 2u);
  Write("train.csv", "0\n1\n0\n");
  EXPECT_EQ(*report.RowsOfEpoch(), 2u);
  ASSERT_TRUE(files_->RemoveAll("train.csv").ok());
  DataReport late(job_, *files_);
  EXPECT_FALSE(late.RowsOfEpoch().ok());
}

}  // namespace
}  // namespace hdps
