// Tests the flags of HTTP: what they may say, their files, and the mistakes that are refused.
#include "common/process/http_flags.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

using Given = std::vector<std::pair<std::string, std::string>>;

class HttpFlagsTest : public ::testing::Test {
 protected:
  // Tests run beside each other, so each has a folder of its own.
  HttpFlagsTest()
      : files_(NewPosixFileSystem()),
        folder_(::testing::TempDir() + "hdps_http_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/") {
    EXPECT_TRUE(files_->RemoveAll(folder_).ok());
    EXPECT_TRUE(files_->MakeDirectories(folder_).ok());
  }
  std::string File(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ + name;
    EXPECT_TRUE(WriteFileAtomically(*files_, path, text).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  Result<HttpFlags> Read(const Given& given, std::string_view unless_given = kHttpOnThisMachine,
                         bool insecure = false) {
    gflags::FlagSaver restored;
    for (const auto& [name, value] : given) {
      EXPECT_FALSE(gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) << name;
    }
    return ReadHttpFlags(*files_, unless_given, insecure);
  }
  std::string Mistake(const Given& given) {
    const Result<HttpFlags> flags = Read(given);
    EXPECT_FALSE(flags.ok()) << given[0].first << "=" << given[0].second;
    EXPECT_EQ(flags.status().code(), Code::kInvalidArgument);
    return flags.status().message();
  }
  static inline const std::string kToken = "0123456789abcdef0123456789abcdef";

  const std::unique_ptr<FileSystem> files_;
  const std::string folder_;
};

TEST_F(HttpFlagsTest, ServesOnThisMachineWithADrawnTokenOrNowhere) {
  const auto first = Read({}), second = Read({});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->options.listen, "127.0.0.1:0");
  EXPECT_THAT(first->options.token, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(first->options.token, second->options.token);
  EXPECT_FALSE(first->unprotected);
  EXPECT_THAT(Read({}, kHttpNowhere)->options.listen, IsEmpty());
  EXPECT_THAT(Read({{"http", "none"}})->options.listen, IsEmpty());
  EXPECT_EQ(Read({{"http", "127.0.0.1:80"}}, kHttpNowhere)->options.listen, "127.0.0.1:80");
  const auto nothing = ServeHttp(*Read({{"http", "none"}}), {});
  EXPECT_TRUE(nothing.ok() && *nothing == nullptr);
}

TEST_F(HttpFlagsTest, ReadsItsFiles) {
  const auto flags = Read({{"http", "0.0.0.0:0"},
                           {"http_names", "Hdps.example,b"},
                           {"http_token_file", File("token", kToken + "\n")},
                           {"http_cert", File("cert", "C", 0644)},
                           {"http_key", File("key", "K")}});
  ASSERT_TRUE(flags.ok()) << flags.status().message();
  EXPECT_EQ(flags->options.token, kToken);
  EXPECT_EQ(flags->options.certificate, "C");
  EXPECT_EQ(flags->options.key, "K");
  EXPECT_THAT(flags->options.names, ElementsAre("hdps.example", "b"));
  EXPECT_FALSE(flags->options.any_name);
  EXPECT_FALSE(flags->unprotected);
}

TEST_F(HttpFlagsTest, AStarIsAnyName) {
  const auto flags = Read({{"http_names", "*"}});
  ASSERT_TRUE(flags.ok()) << flags.status().message();
  EXPECT_TRUE(flags->options.any_name);
  EXPECT_THAT(flags->options.names, IsEmpty());
  EXPECT_THAT(Mistake({{"http_names", "*,a"}}), HasSubstr("is no name of a host"));
}

TEST_F(HttpFlagsTest, LeavesThisMachineOnlyProtectedOrInsecure) {
  const std::string token = File("token", kToken), cert = File("cert", "C"), key = File("key", "K");
  const Given tls = {{"http", "*:0"}, {"http_cert", cert}, {"http_key", key}};
  const Given known = {{"http", "10.1.2.3:80"}, {"http_token_file", token}};
  for (const Given& given : {tls, known, Given{{"http", "host.example:0"}}}) {
    EXPECT_THAT(Mistake(given), HasSubstr("other machines reach this address: give "
                                          "--http_token_file=FILE, and --http_cert=FILE"));
    const auto insecure = Read(given, kHttpNowhere, true);
    ASSERT_TRUE(insecure.ok());
    EXPECT_TRUE(insecure->unprotected);
  }
}

TEST_F(HttpFlagsTest, RefusesMistakesWithTheirMend) {
  const std::string cert = File("cert", "C"), key = File("key", "K");
  const std::string absent = folder_ + "absent";
  for (const char* text :
       {"8080", "ipc:///tmp/a", "127.0.0.1:70000", "tcp://127.0.0.1:1", "NONE"}) {
    EXPECT_THAT(Mistake({{"http", text}}),
                HasSubstr("--http: \"" + std::string(text) + "\" is no address for HTTP; write"));
  }
  EXPECT_THAT(Mistake({{"http_cert", cert}}), HasSubstr("TLS needs both; give --http_key=FILE"));
  EXPECT_THAT(Mistake({{"http_key", key}}), HasSubstr("TLS needs both; give --http_cert=FILE"));
  EXPECT_THAT(Mistake({{"http_cert", absent}, {"http_key", key}}), HasSubstr("cannot open"));
  EXPECT_THAT(Mistake({{"http_cert", cert}, {"http_key", absent}}), HasSubstr("--http_key="));
  for (const mode_t mode : {0640, 0604, 0620}) {
    EXPECT_THAT(Mistake({{"http_cert", cert}, {"http_key", File("key", "K", mode)}}),
                HasSubstr("is no secret: chmod 600 "));
    EXPECT_THAT(Mistake({{"http_token_file", File("token", kToken, mode)}}),
                HasSubstr("is no secret: chmod 600 "));
  }
  EXPECT_THAT(Mistake({{"http_token_file", absent}}),
              HasSubstr("there is no such file; make one with (umask 077; openssl rand -hex 16"));
  for (const std::string& text : {std::string(), std::string("short"), kToken + "\n" + kToken,
                                  "a " + kToken, std::string(129, 'a')}) {
    EXPECT_THAT(Mistake({{"http_token_file", File("token", text)}}),
                HasSubstr("it holds no token, which is 22 to 128 letters"));
  }
  for (const char* names : {"a:80", "a,,b", "a b", "http://a", ","}) {
    EXPECT_THAT(Mistake({{"http_names", names}}), HasSubstr("is no name of a host; write names"));
  }
  for (const char* flag : {"http_names", "http_token_file", "http_cert", "http_key"}) {
    EXPECT_THAT(Mistake({{"http", "none"}, {flag, "a"}}),
                HasSubstr("nothing is served; give --http=HOST:PORT as well"));
  }
}

TEST_F(HttpFlagsTest, RefusesATokenInPlaceOfACertificate) {
  const auto flags = Read({{"http_cert", File("cert", "C")}, {"http_key", File("key", "K")}});
  ASSERT_TRUE(flags.ok());
  const auto server = ServeHttp(*flags, {});
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.status().message(),
              HasSubstr("--http=127.0.0.1:0: cannot serve HTTP at https"));
  EXPECT_THAT(server.status().message(), HasSubstr("give a certificate and its key as PEM"));
}

}  // namespace
}  // namespace hdps
