// Tests the texts of requests to etcd and of its answers, and where and how etcd is reached.
#include "common/election/etcd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = EtcdRequest::Kind;

EtcdPlace PlaceOf(const std::string& text) { return *ParseEtcdPlace("--elect", text); }

// As etcd 3.4.23 answers.
constexpr char kLeads[] =
    R"({"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437",)"
    R"("revision":"12","raft_term":"2"},"succeeded":true,"responses":[{"response_range":{"header":)"
    R"({"revision":"12"},"kvs":[{"key":"YS9sZWFkZXI=","create_revision":"9","mod_revision":"9",)"
    R"("version":"1","value":"dGNwOi8vYToxMg==","lease":"7587870"}],"count":"1"}},)"
    R"({"response_range":{"header":{"revision":"12"}}}]})";

TEST(EtcdPlaceTest, EndpointsAndPrefixAreRead) {
  const EtcdPlace place = PlaceOf("etcd://127.0.0.1:2379,etcd-1.x:23/jobs/a.b_c-1");
  EXPECT_THAT(place.endpoints, ElementsAre("127.0.0.1:2379", "etcd-1.x:23"));
  EXPECT_EQ(place.LeaderKey(), "jobs/a.b_c-1/leader");
  EXPECT_EQ(place.EndKey(), "jobs/a.b_c-1/end");
  EXPECT_TRUE(place.beyond_loopback);
  EXPECT_FALSE(PlaceOf("etcd://127.0.0.1:2379/a").beyond_loopback);
}

TEST(EtcdPlaceTest, MistakesNameWhatWouldBeRight) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"http://a:1/x", "does not begin with etcd://"},
      {"etcd://a:1", "prefix of the job's keys is missing"},
      {"etcd://a:1/", "prefix of the job's keys is missing"},
      {"etcd:///x", "'' is no HOST:PORT"},
      {"etcd://a/x", "'a' is no HOST:PORT"},
      {"etcd://a:0/x", "'a:0' is no HOST:PORT"},
      {"etcd://a:70000/x", "'a:70000' is no HOST:PORT"},
      {"etcd://a:1,/x", "'' is no HOST:PORT"},
      {"etcd://*:1/x", "'*:1' is no HOST:PORT"},
      {"etcd://a:1+2/x", "'a:1+2' is no HOST:PORT"},
      {"etcd://a:1/x y", "a prefix has letters"},
      {"etcd://a:1//x", "a prefix has letters"},
      {"etcd://a:1/x/", "a prefix has letters"},
      {"etcd://a:1/" + std::string(600, 'x'), "at most 512"}};
  for (const auto& [text, why] : mistakes) {
    const Status status = ParseEtcdPlace("--elect", text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(why));
    EXPECT_THAT(status.message(), HasSubstr("write etcd://HOST:PORT[,HOST:PORT...]/PREFIX"));
  }
}

TEST(EtcdLoginTest, TheFileIsReadAndItsMistakesNeverShowThePassword) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(WriteFileAtomically(*files, "ca.pem", std::string("x")).ok());
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(*files, "login", text).ok());
    return ReadEtcdLogin(*files, "--elect_file=login", "login");
  };
  const auto login = read(R"({"user": "u", "password": "geheim", "ca": "ca.pem"})");
  ASSERT_TRUE(login.ok()) << login.status().message();
  EXPECT_EQ(login->user, "u");
  EXPECT_EQ(login->password, "geheim");
  EXPECT_EQ(login->ca, "ca.pem");
  const std::pair<std::string, std::string> mistakes[] = {
      {"geheim", "no JSON object"},
      {R"({"user": "u"})", "user and password go together"},
      {R"({"password": "geheim"})", "user and password go together"},
      {R"({"user": 1, "password": "geheim"})", "'user' is no text"},
      {R"({"name": "u", "password": "geheim"})", "no field 'name'"},
      {R"({"ca": "ca.pem", "cert": "ca.pem"})", "cert and key go together"},
      {R"({"cert": "ca.pem", "key": "ca.pem"})", "need ca"},
      {R"({"ca": "none.pem"})", "there is no file none.pem"}};
  for (const auto& [text, why] : mistakes) {
    const Status status = read(text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(why));
    EXPECT_THAT(status.message(), testing::Not(HasSubstr("geheim")));
  }
  EXPECT_FALSE(ReadEtcdLogin(*files, "--elect_file=none", "none").ok());
}

TEST(EtcdTextsTest, RequestsAreAsTheGatewayTakesThem) {
  const EtcdPlace place = PlaceOf("etcd://127.0.0.1:1/a");
  EXPECT_EQ(BodyOf(place, {.kind = Kind::kGrant, .ttl_s = 5}), R"({"TTL":"5"})");
  EXPECT_EQ(BodyOf(place, {.kind = Kind::kKeepAlive, .lease = 77}), R"({"ID":"77"})");
  EXPECT_EQ(PathOf({.kind = Kind::kKeepAlive}), "/v3/lease/keepalive");
  EXPECT_EQ(PathOf({.kind = Kind::kCampaign}), "/v3/kv/txn");
  EXPECT_EQ(BodyOf(place, {}), R"({"success":[{"request_range":{"key":"YS9sZWFkZXI="}},)"
                               R"({"request_range":{"key":"YS9lbmQ="}}]})");
  EXPECT_EQ(
      BodyOf(place, {.kind = Kind::kCampaign, .lease = 7, .end_revision = 3, .text = "tcp://a:12"}),
      R"({"compare":[{"create_revision":"0","key":"YS9sZWFkZXI=","result":"EQUAL",)"
      R"("target":"CREATE"},{"key":"YS9lbmQ=","mod_revision":"3","result":"EQUAL",)"
      R"("target":"MOD"}],"success":[{"request_put":{"key":"YS9sZWFkZXI=","lease":"7",)"
      R"("value":"dGNwOi8vYToxMg=="}},{"request_delete_range":{"key":"YS9lbmQ="}}]})");
}

TEST(EtcdTextsTest, AnswersAreRead) {
  const auto look = ReadEtcdAnswer({}, 200, kLeads);
  ASSERT_TRUE(look.ok()) << look.status().message();
  EXPECT_EQ(look->revision, 12);
  ASSERT_TRUE(look->leader);
  EXPECT_EQ(look->leader->text, "tcp://a:12");
  EXPECT_EQ(look->leader->create_revision, 9);
  EXPECT_EQ(look->leader->lease, 7587870);
  EXPECT_FALSE(look->end);
  const auto grant = ReadEtcdAnswer({.kind = Kind::kGrant}, 200,
                                    R"({"header":{"revision":"1"},"ID":"7587","TTL":"5"})");
  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(grant->lease, 7587);
  EXPECT_EQ(grant->ttl_s, 5);
  const auto alive = ReadEtcdAnswer({.kind = Kind::kKeepAlive}, 200,
                                    R"({"result":{"header":{"revision":"1"},"ID":"7","TTL":"5"}})");
  ASSERT_TRUE(alive.ok());
  EXPECT_EQ(alive->ttl_s, 5);
  const auto gone = ReadEtcdAnswer({.kind = Kind::kKeepAlive}, 200, R"({"result":{"ID":"7"}})");
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->ttl_s, 0);
  const auto lost =
      ReadEtcdAnswer({.kind = Kind::kCampaign}, 200, R"({"header":{"revision":"9"}})");
  ASSERT_TRUE(lost.ok());
  EXPECT_FALSE(lost->succeeded);
}

TEST(EtcdTextsTest, RefusalsAreToldFromFailures) {
  const auto code = [](int status, const std::string& body) {
    return ReadEtcdAnswer({}, status, body).status().code();
  };
  EXPECT_EQ(code(404, "404 page not found"), Code::kInvalidArgument);
  EXPECT_EQ(code(404, R"({"error":"requested lease not found","code":5})"), Code::kUnavailable);
  EXPECT_EQ(code(400, R"({"error":"user name is empty","code":3})"), Code::kInvalidArgument);
  EXPECT_EQ(code(403, R"({"error":"permission denied","code":7})"), Code::kInvalidArgument);
  EXPECT_EQ(code(503, R"({"error":"no leader","code":14})"), Code::kUnavailable);
  EXPECT_THAT(ReadEtcdAnswer({}, 503, "{\"error\":\"a\\u001bb\"}").status().message(),
              HasSubstr("a\\x1bb"));
  EXPECT_EQ(*ReadEtcdToken(200, R"({"token":"abc.1"})"), "abc.1");
  EXPECT_FALSE(ReadEtcdToken(200, R"({"token":"a\r\nEvil: 1"})").ok());
  EXPECT_FALSE(ReadEtcdToken(200, R"({"token":""})").ok());
}

TEST(EtcdTextsTest, DamagedAnswersAreFailures) {
  const std::string good = kLeads;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::string> damaged = {
      "",
      "null",
      "[]",
      "1",
      "\"a\"",
      "{",
      "{}",
      R"({"header":1})",
      R"({"header":{}})",
      R"({"header":{"revision":"12"},"responses":1})",
      R"({"header":{"revision":"12"},"responses":[]})",
      R"({"header":{"revision":"12"},"responses":[1,2]})",
      R"({"header":{"revision":"12"},"responses":[{},{}]})",
      std::string(1 << 18, '['),
      good.substr(0, good.size() - 1),
      good + "}",
      "\xff\xfe" + good,
      with("\"12\"", "\"-12\""),
      with("\"12\"", "\"12x\""),
      with("\"12\"", "1.5"),
      with("\"12\"", "\"99999999999999999999\""),
      with("\"12\"", "18446744073709551615"),
      with("\"create_revision\":\"9\",", ""),
      with("\"create_revision\":\"9\"", R"("create_revision":"10")"),
      with("\"mod_revision\":\"9\"", "\"mod_revision\":[]"),
      with("dGNwOi8vYToxMg==", "dGNwOi8vYToxMg="),
      with("dGNwOi8vYToxMg==", "dGNw????"),
      with("\"dGNwOi8vYToxMg==\"", "7"),
      with("dGNwOi8vYToxMg==", std::string(8000, 'A')),
      with("true", "\"yes\""),
      with("\"lease\":\"7587870\"", "\"lease\":\"\"")};
  EXPECT_GE(damaged.size(), 30u);
  for (const std::string& text : damaged) {
    const Status status = ReadEtcdAnswer({}, 200, text).status();
    EXPECT_EQ(status.code(), Code::kUnavailable) << text.substr(0, 300);
    EXPECT_THAT(status.message(), HasSubstr("damaged"));
  }
  for (const Kind kind : {Kind::kGrant, Kind::kKeepAlive}) {
    for (const char* text : {"{}", R"({"header":{"revision":"1"},"ID":"x","TTL":"5"})",
                             R"({"header":{"revision":"1"},"ID":"0","TTL":"5"})", "[1]"}) {
      EXPECT_FALSE(ReadEtcdAnswer({.kind = kind}, 200, text).ok()) << text;
    }
  }
}

}  // namespace
}  // namespace hdps
