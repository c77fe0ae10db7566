// Plants names, images, paths and quantities that Kubernetes refuses, beside such that it takes.
#include "tools/deploy/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kDigest = "@sha256:" + std::string(64, 'a');

TEST(DeployChecks, Names) {
  for (const std::string& good : {std::string("a"), std::string("a-1"), std::string(63, 'z')}) {
    EXPECT_TRUE(CheckObjectName("--name", good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("A"), std::string("1a"), std::string("-a"), std::string("a-"),
        std::string("a_b"), std::string("a.b"), std::string("a b"), std::string("ä"),
        std::string(64, 'z'), std::string("a\nb")}) {
    EXPECT_EQ(CheckObjectName("--name", bad).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_THAT(CheckObjectName("--name", "Wide_Deep").message(),
              AllOf(HasSubstr("--name=Wide_Deep: "), HasSubstr("give --name=wide-deep")));
  EXPECT_EQ(ObjectNameOf("1_Wide & Deep!"), "wide-deep");
  EXPECT_EQ(ObjectNameOf("2024"), "");
  EXPECT_TRUE(CheckObjectName("--name", ObjectNameOf(std::string(62, 'a') + "-bc")).ok());
}

TEST(DeployChecks, NamesWithDots) {
  for (const char* good : {"hdps", "1.2", "a.b-c.d", "0"}) {
    EXPECT_TRUE(CheckSubdomainName("--claim", good).ok()) << good;
  }
  const std::string part = std::string(60, 'a') + ".";
  EXPECT_FALSE(CheckSubdomainName("--claim", part + part + part + part + part + "a").ok());
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "A", "a/b", "a_b", "-a", "a-.b"}) {
    EXPECT_FALSE(CheckSubdomainName("--claim", bad).ok()) << bad;
  }
}

TEST(DeployChecks, Images) {
  for (const std::string& good :
       {std::string("hdps"), std::string("hdps:1.0"), "hdps" + kDigest,
        "r.example/a/b:T_1" + kDigest, std::string("localhost:5000/hdps"),
        std::string("Registry.Example:443/a__b/c.d-e"), std::string("a--b:v1")}) {
    EXPECT_TRUE(CheckImage("--image", good).ok()) << good;
  }
  for (const std::string& bad : {std::string(),
                                 std::string(":1.0"),
                                 std::string("hdps:"),
                                 std::string("Hdps"),
                                 std::string("a b"),
                                 std::string("/hdps"),
                                 std::string("hdps/"),
                                 std::string("a//b"),
                                 std::string("hdps:-1"),
                                 std::string("hdps:") + std::string(129, 'a'),
                                 std::string("hdps@sha256:abc"),
                                 std::string("hdps@md5:") + std::string(64, 'a'),
                                 std::string("a.-b"),
                                 std::string("a___b"),
                                 std::string("_a"),
                                 std::string("r.example:x/a"),
                                 std::string("r.example:/a"),
                                 std::string("r.example:443/"),
                                 std::string(256, 'a'),
                                 kDigest,
                                 std::string("https://r.example/a")}) {
    const Status status = CheckImage("--image", bad);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << bad;
    EXPECT_THAT(status.message(), HasSubstr("--image=" + bad + ": "));
  }
  EXPECT_THAT(CheckImage("--image", ":1.0").message(), HasSubstr("the image has no name"));
}

TEST(DeployChecks, PathsWithinTheVolume) {
  for (const char* good : {"", "out", "out/census-1", "a.b/c_d", "...a"}) {
    EXPECT_TRUE(CheckVolumePath("--out", good).ok()) << good;
  }
  for (const char* bad : {"/out", "../out", "a/../b", "a//b", ".", "a b", "a$b", "a:b", "a\nb"}) {
    EXPECT_FALSE(CheckVolumePath("--out", bad).ok()) << bad;
  }
}

TEST(DeployChecks, Quantities) {
  EXPECT_EQ(*ReadQuantity("--server_memory", "512Mi"), uint64_t{512} << 20);
  EXPECT_EQ(*ReadQuantity("--server_memory", "1.5Gi"), uint64_t{1536} << 20);
  EXPECT_EQ(*ReadQuantity("--server_memory", "2G"), uint64_t{2'000'000'000});
  EXPECT_EQ(*ReadQuantity("--server_memory", "100000000"), uint64_t{100'000'000});
  for (const char* bad : {"", "8GiB", "8GB", "8gi", "Gi", "-1Gi", "1e400Gi", "nan", "infGi", "8 Gi",
                          "1Mi", "9999Ti"}) {
    const Result<uint64_t> read = ReadQuantity("--server_memory", bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_THAT(read.status().message(), HasSubstr(std::string("--server_memory=") + bad + ": "));
  }
}

}  // namespace
}  // namespace hdps
