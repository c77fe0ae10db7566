// Tests the start of a program: flags, environment, log lines, signals, process id, exit status.
#include "common/process/command_line.h"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "common/platform/file_system.h"

DEFINE_int32(workers, 1, "how many workers take part");
DEFINE_string(set, "", "fields of the job file");
DEFINE_string(scheduler, "", "where the scheduler is");
DEFINE_int32(rank, -1, "which worker this is");
DEFINE_bool(
    insecure, false,
    "a long text about what this flag does, so long that it has to be broken into lines that "
    "fit a terminal of eighty columns");

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CommandLineTest : public ::testing::Test {
 protected:
  Status Parse(std::vector<std::string> arguments, std::vector<std::string>* rest = nullptr) {
    arguments.insert(arguments.begin(), "program");
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    int argc = static_cast<int>(pointers.size());
    char** argv = pointers.data();
    constexpr std::string_view kFlags[] = {"workers", "set", "scheduler", "rank", "insecure"};
    return ParseCommandLine("usage: program --workers=N", &argc, &argv, rest, kFlags, hint_);
  }
  std::string Mistake(const std::vector<std::string>& arguments) {
    const Status status = Parse(arguments);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  }
  void Environment(const char* name, const char* value) {
    ::setenv(name, value, 1);
    variables_.push_back(name);
  }
  void TearDown() override {
    for (const char* name : variables_) ::unsetenv(name);
  }

  FlagHint hint_;

 private:
  gflags::FlagSaver saver_;  // Every test begins with the defaults.
  std::vector<const char*> variables_;
};

TEST_F(CommandLineTest, FlagsAreRead) {
  EXPECT_TRUE(
      Parse({"--workers=3", "-rank", "2", "--insecure", "--set=a=1", "--set=b=[2,3]"}).ok());
  EXPECT_EQ(FLAGS_workers, 3);
  EXPECT_EQ(FLAGS_rank, 2);
  EXPECT_TRUE(FLAGS_insecure);
  EXPECT_EQ(FLAGS_set, "a=1,b=[2,3]");
  EXPECT_TRUE(Parse({"--noinsecure"}).ok());
  EXPECT_FALSE(FLAGS_insecure);
  std::vector<std::string> rest;
  EXPECT_TRUE(Parse({"x", "--workers=4", "--", "--y"}, &rest).ok());
  EXPECT_THAT(rest, ElementsAre("x", "--y"));
}

TEST_F(CommandLineTest, MistakesAreAnswered) {
  EXPECT_EQ(Mistake({"--worker=2"}), "--worker: there is no such flag; did you mean --workers?");
  EXPECT_EQ(Mistake({"--workers=two"}), "--workers: \"two\" is not a whole number");
  EXPECT_EQ(Mistake({"--workers=99999999999"}), "--workers: \"99999999999\" is not a whole number");
  EXPECT_THAT(Mistake({"--insecure=maybe"}), HasSubstr("true or false"));
  EXPECT_THAT(Mistake({"--workers"}), HasSubstr("--workers=VALUE"));
  EXPECT_THAT(Mistake({"stray"}), HasSubstr("\"stray\""));
  EXPECT_THAT(Mistake({"--xyzzy"}), HasSubstr("--help"));
  EXPECT_THAT(Mistake({"--noworkers"}), HasSubstr("--noworkers"));
  EXPECT_THAT(Mistake({"--flagfile=/etc/passwd"}), HasSubstr("is no flag; write one"));
  EXPECT_THAT(Mistake({"--flagfile=/nowhere"}), HasSubstr("/nowhere"));
  // Flags of libraries, and of other commands of the same program.
  EXPECT_THAT(Mistake({"--minloglevel=3"}), HasSubstr("no such flag"));
}

TEST_F(CommandLineTest, WhatIsNoFlagMayBeKnownElsewhere) {
  hint_ = [](const std::string& name, const std::string& value) {
    return name == "epochs" ? "it is a setting, " + name + "=" + value : "";
  };
  EXPECT_EQ(Mistake({"--epochs=3"}), "--epochs: there is no such flag; it is a setting, epochs=3");
  EXPECT_THAT(Mistake({"--epochs", "3"}), HasSubstr("it is a setting, epochs=3"));
  EXPECT_THAT(Mistake({"--epochs", "--workers=2"}), HasSubstr("it is a setting, epochs="));
  EXPECT_EQ(Mistake({"--worker=2"}), "--worker: there is no such flag; did you mean --workers?");
}

TEST_F(CommandLineTest, AFileMayHoldFlags) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string path = ::testing::TempDir() + "hdps_flags_" + std::to_string(::getpid());
  ASSERT_TRUE(
      WriteFileAtomically(*files, path, "# ours\n\n--workers=9\n--set=b=2\n--noinsecure\n").ok());
  EXPECT_TRUE(Parse({"--set=a=1", "--insecure", "--flagfile", path, "--set=c=3"}).ok());
  EXPECT_EQ(FLAGS_workers, 9);
  EXPECT_EQ(FLAGS_set, "a=1,b=2,c=3");
  EXPECT_FALSE(FLAGS_insecure);
  ASSERT_TRUE(WriteFileAtomically(*files, path, "--wokers=9\n").ok());
  EXPECT_THAT(Mistake({"--flagfile=" + path}), HasSubstr("did you mean --workers?"));
  EXPECT_TRUE(files->RemoveAll(path).ok());
}

TEST_F(CommandLineTest, EnvironmentFillsWhatIsNotGiven) {
  Environment("HDPS_WORKERS", "5");
  Environment("MS_WORKER_NUM", "6");
  Environment("MS_SCHED_HOST", "10.0.0.1");
  Environment("MS_SCHED_PORT", "8118");
  Environment("MS_NODE_ID", "3");
  EXPECT_TRUE(Parse({}).ok());
  EXPECT_EQ(FLAGS_workers, 5);
  EXPECT_EQ(FLAGS_scheduler, "tcp://10.0.0.1:8118");
  EXPECT_EQ(FLAGS_rank, 3);
  EXPECT_TRUE(Parse({"--workers=7", "--rank=0"}).ok());
  EXPECT_EQ(FLAGS_workers, 7);
  EXPECT_EQ(FLAGS_rank, 0);
}

TEST_F(CommandLineTest, AliasesCountAndMistakesThereAreNamed) {
  Environment("DMLC_NUM_WORKER", "6");
  Environment("MS_NODE_ID", "worker-a");  // A name is not a rank.
  EXPECT_TRUE(Parse({}).ok());
  EXPECT_EQ(FLAGS_workers, 6);
  EXPECT_EQ(FLAGS_rank, -1);
  Environment("HDPS_RANK", "one");
  EXPECT_EQ(Mistake({}), "HDPS_RANK: \"one\" is not a whole number");
}

TEST_F(CommandLineTest, HelpFitsATerminalAndEndsWell) {
  ::testing::internal::CaptureStdout();
  const Status status = Parse({"--workers=nonsense", "--help"});
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(ReportAndExitStatus("program", status), kExitDone);
  EXPECT_THAT(text, AllOf(HasSubstr("usage: program"), HasSubstr("  --workers ("),
                          HasSubstr("default: 1"), Not(HasSubstr("minloglevel"))));
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    EXPECT_LE(end - begin, 80u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--version"}).code(), Code::kCancelled);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), ContainsRegex("hdps [0-9.]+, protocol"));
}

TEST_F(CommandLineTest, StatusesBecomeExitStatuses) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ReportAndExitStatus("p", Status()), 0);
  EXPECT_EQ(ReportAndExitStatus("p", Status(Code::kInvalidArgument, "a: wrong")), 2);
  EXPECT_EQ(ReportAndExitStatus("p", Status(Code::kNotFound, "b")), 2);
  EXPECT_EQ(ReportAndExitStatus("p", Status(Code::kIoError, "c")), 3);
  EXPECT_EQ(ReportAndExitStatus("p", Status(Code::kCancelled, "help was asked for")), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "p: error: a: wrong\np: error: b\np: error: c\n");
}

TEST(ExitStatusTest, AnEndBecomesAnErrorThatEndsTheSameWay) {
  for (const int status : {kExitDone, kExitMistaken, kExitFailed}) {
    EXPECT_EQ(ExitStatusOf(StatusOf({status, "why"}).code()), status);
  }
  EXPECT_EQ(StatusOf({kExitMistaken, "why"}).message(), "why");
  for (const Code code : {Code::kTimeout, Code::kUnavailable, Code::kStaleView,
                          Code::kResourceExhausted, Code::kCorruption, Code::kIoError}) {
    EXPECT_EQ(ExitStatusOf(code), kExitFailed) << CodeName(code);
  }
}

TEST(PidFileTest, LivesAsLongAsItsObject) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string folder = ::testing::TempDir() + "hdps_pid_" + std::to_string(::getpid());
  const std::string path = folder + "/a.pid";
  {
    const PidFile pid(path);
    EXPECT_TRUE(pid.status().ok());
    EXPECT_EQ(*ReadWholeFile(*files, path, 100), std::to_string(::getpid()) + "\n");
  }
  EXPECT_FALSE(files->Exists(path));
  EXPECT_TRUE(PidFile("").status().ok());
  EXPECT_EQ(PidFile("/proc/nowhere/a.pid").status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(files->RemoveAll(folder).ok());
}

// Logging and signals belong to the whole process, so each test has its own.
void LogThreeLines(const std::string& path) {
  if (!StartLogging("server_0", path, "warning").ok()) std::exit(1);
  LOG(INFO) << "too quiet";
  LOG(WARNING) << "loud";
  LOG(ERROR) << "louder";
  std::exit(0);
}

TEST(LogLinesDeathTest, GoIntoTheFileWithTheirTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string path = ::testing::TempDir() + "hdps_log_lines/a.log";
  EXPECT_EXIT(LogThreeLines(path), ::testing::ExitedWithCode(0), "E server_0 louder");
  const Result<std::string> text = ReadWholeFile(*files, path, 10000);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(files->RemoveAll(::testing::TempDir() + "hdps_log_lines").ok());
  const std::string stamp = "20[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]+Z ";
  EXPECT_THAT(*text, ContainsRegex(stamp + "W server_0 loud\n"));
  EXPECT_THAT(*text, ContainsRegex(stamp + "E server_0 louder\n"));
  EXPECT_THAT(*text, Not(HasSubstr("too quiet")));
}

void LogInTwoFiles(const std::string& first, const std::string& second) {
  if (!StartLogging("p", first, "info").ok()) std::exit(1);
  LOG(INFO) << "one";
  if (!StartLogging("q", second, "warning").ok()) std::exit(1);
  LOG(INFO) << "too quiet now";
  LOG(WARNING) << "two";
  if (!StartLogging("r", "", "warning").ok()) std::exit(1);
  LOG(WARNING) << "three";
  std::exit(0);
}

TEST(LogLinesDeathTest, MoveWithALaterCall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string folder = ::testing::TempDir() + "hdps_log_moves/";
  EXPECT_EXIT(LogInTwoFiles(folder + "1.log", folder + "2.log"), ::testing::ExitedWithCode(0),
              "^[^\n]* W r three\n$");
  const Result<std::string> first = ReadWholeFile(*files, folder + "1.log", 10000);
  const Result<std::string> second = ReadWholeFile(*files, folder + "2.log", 10000);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(*first, ContainsRegex("^[^\n]* I p one\n$"));
  EXPECT_THAT(*second, ContainsRegex("^[^\n]* W q two\n$"));
  EXPECT_TRUE(files->RemoveAll(folder).ok());
}

TEST(LogLinesDeathTest, RefuseAWrongLevelAndFile) {
  EXPECT_THAT(StartLogging("p", "", "warn").message(), HasSubstr("\"warn\""));
  EXPECT_THAT(StartLogging("p", "/proc/nowhere/x.log", "info").message(), HasSubstr("--log_file"));
}

void SignalTwice(int first, int second) {
  InstallStopSignals();
  if (StopRequested()) std::exit(1);
  std::raise(first);
  std::raise(first);  // As sent to the process and to its group.
  if (!StopRequested()) std::exit(2);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(501)) {
  }
  std::raise(second);
  std::exit(3);
}

TEST(StopSignalsDeathTest, TheFirstAsksALaterOneEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(SignalTwice(SIGTERM, SIGINT), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(SignalTwice(SIGHUP, SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
}

void HangUpUnderNohup() {
  std::signal(SIGHUP, SIG_IGN);
  InstallStopSignals();
  std::raise(SIGHUP);
  std::exit(StopRequested() ? 1 : 0);
}

TEST(StopSignalsDeathTest, AHangUpThatIsIgnoredStaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HangUpUnderNohup(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hdps
