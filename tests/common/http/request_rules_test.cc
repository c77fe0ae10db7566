// Tests how targets, queries, Host headers, tokens and cookies are read.
#include "common/http/request_rules.h"

#include <gtest/gtest.h>

namespace hdps {
namespace {

TEST(RequestRules, ATargetIsAPathAndAQuery) {
  EXPECT_EQ(SplitTarget("/a?b=c&d").path, "/a");
  EXPECT_EQ(SplitTarget("/a?b=c&d").query, "b=c&d");
  EXPECT_EQ(SplitTarget("/a?b#c").query, "b");
  EXPECT_EQ(SplitTarget("").path, "");
  EXPECT_EQ(SplitTarget("/a%3fb").path, "/a%3fb");
  EXPECT_EQ(SplitTarget("/a??").query, "?");
}

TEST(RequestRules, AQueryHasDecodedValues) {
  EXPECT_EQ(QueryValue("a=1&b=2&b=3", "b"), "2");
  EXPECT_EQ(QueryValue("a=1", "b"), std::nullopt);
  EXPECT_EQ(QueryValue("b", "b"), "");
  EXPECT_EQ(QueryValue("b=x%3Dy+z=w", "b"), "x=y z=w");
  EXPECT_EQ(QueryValue("%62=1", "b"), "1");
  EXPECT_EQ(QueryValue("b=%", "b"), std::nullopt);
  EXPECT_EQ(QueryValue("b=%4", "b"), std::nullopt);
  EXPECT_EQ(QueryValue("b=%4g", "b"), std::nullopt);
  EXPECT_EQ(QueryValue("b=%00", "b"), std::string(1, '\0'));
}

TEST(RequestRules, AParameterCanBeTakenOut) {
  EXPECT_EQ(QueryWithout("token=1&a=%20&token=2&b", "token"), "a=%20&b");
  EXPECT_EQ(QueryWithout("%74oken=1", "token"), "");
  EXPECT_EQ(QueryWithout("a=1&&b=2", "token"), "a=1&b=2");
  EXPECT_EQ(QueryWithout("a=\r\nSet-Cookie:x&token=1", "token"), "");
  EXPECT_EQ(QueryWithout("a=\xff", "token"), "");
}

TEST(RequestRules, AHostHasNoPort) {
  EXPECT_EQ(HostOf("Example.COM:80"), "example.com");
  EXPECT_EQ(HostOf(" 127.0.0.1 "), "127.0.0.1");
  EXPECT_EQ(HostOf("a:"), "a");
  for (const char* wrong :
       {"", ":80", "a:b", "a:80:80", "a:123456", "[::1]:80", "a b", "a/b", "a@b", "\xc3\xa4"}) {
    EXPECT_EQ(HostOf(wrong), std::nullopt) << wrong;
  }
}

TEST(RequestRules, ATokenIsWhole) {
  EXPECT_TRUE(IsBearer("Bearer abc", "abc"));
  EXPECT_TRUE(IsBearer("bearer   abc ", "abc"));
  for (const char* wrong : {"Bearer ab", "Bearer abcd", "Bearer Abc", "Bearerabc", "abc", "",
                            "Basic abc", "Bearer", "Bearer abc abc"}) {
    EXPECT_FALSE(IsBearer(wrong, "abc")) << wrong;
  }
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "xbc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "ab"));
}

TEST(RequestRules, ABodyHasOneEnd) {
  const auto bytes = [](const char* length) { return BodyFrameOf(length, std::nullopt); };
  EXPECT_TRUE(BodyFrameOf(std::nullopt, std::nullopt)->empty());
  EXPECT_TRUE(bytes("000")->empty());
  EXPECT_EQ(bytes(" 0017\t")->bytes, 17u);
  EXPECT_EQ(bytes("18446744073709551615")->bytes, UINT64_MAX);
  for (const char* wrong :
       {"", " ", "-1", "+1", "1 1", "1,1", "0x1", "1.0", "1e3", "18446744073709551616"}) {
    EXPECT_EQ(bytes(wrong), std::nullopt) << wrong;
  }
  EXPECT_TRUE(BodyFrameOf(std::nullopt, " CHUNKED ")->chunked);
  EXPECT_FALSE(BodyFrameOf(std::nullopt, "chunked")->empty());
  for (const char* wrong : {"", "gzip", "gzip, chunked", "chunked, chunked", "chunked;a"}) {
    EXPECT_EQ(BodyFrameOf(std::nullopt, wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(BodyFrameOf("0", "chunked"), std::nullopt);
}

TEST(RequestRules, ACookieHasItsNameAndValue) {
  EXPECT_TRUE(HasCookie("a=1; b=2", "b", "2"));
  EXPECT_TRUE(HasCookie("b=1;b=2", "b", "2"));
  EXPECT_TRUE(HasCookie("b=1=2", "b", "1=2"));
  for (const char* wrong : {"", "b", "b=", "b=\"", "b=\"2\"", "ab=2", "b=22", "B=2", "a=b=2"}) {
    EXPECT_FALSE(HasCookie(wrong, "b", "2")) << wrong;
  }
}

}  // namespace
}  // namespace hdps
