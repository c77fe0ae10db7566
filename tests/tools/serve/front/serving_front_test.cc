// Tests what paths answer about models, without a checkpoint and without HTTP.
#include "tools/serve/front/serving_front.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "tests/tools/serve/front/fake_model.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kInstances[] =
    R"({"instances": [{"age": 1, "user": "a"}, {"age": 2, "user": "b"}]})";
constexpr char kInputs[] =
    R"({"inputs": [{"name": "age", "shape": [2], "datatype": "FP32", "data": [1, 2]}]})";

class ServingFrontTest : public ::testing::Test {
 protected:
  ServingFrontTest() { Make(true); }
  void Make(bool open) {
    front_.emplace(std::vector<WatchedModel>{{&model_, &watch_}, {&second_, nullptr}}, open, queue_,
                   *clock_);
    paths_ = front_->Paths();
  }

  // Finds the path as the server does: the longest that fits.
  const HttpPath& PathOf(const std::string& path) {
    const HttpPath* found = nullptr;
    for (const HttpPath& one : paths_) {
      const bool below =
          one.path.size() > 1 && one.path.back() == '/' && path.starts_with(one.path);
      if (one.path != path && !below) continue;
      if (found == nullptr || one.path.size() > found->path.size()) found = &one;
    }
    EXPECT_NE(found, nullptr) << path;
    return *found;
  }
  HttpAnswer Get(const std::string& path) {
    HttpRequest request;
    request.path = path;
    request.query = [](std::string_view) { return std::string(); };
    return PathOf(path).answer(request);
  }
  HttpAnswer Post(const std::string& path, const std::string& body,
                  std::map<std::string, std::string, std::less<>> headers = {}) {
    std::optional<HttpAnswer> answer;
    PathOf(path).take({path, std::move(headers), body}, [&](HttpAnswer one) {
      EXPECT_FALSE(answer.has_value()) << "two answers";
      answer = std::move(one);
    });
    queue_.Run();
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(HttpAnswer{.status = 0, .body = std::make_shared<std::string>()});
  }
  static void ExpectError(const HttpAnswer& answer, int status, const std::string& part) {
    EXPECT_EQ(answer.status, status) << *answer.body;
    EXPECT_THAT(*answer.body, AllOf(HasSubstr(R"({"error":)"), HasSubstr(part)));
    EXPECT_EQ(answer.type, "application/json");
  }

  FakeModel model_{"clicks"}, second_{"second"};
  KeptWatch watch_;
  HeldQueue queue_;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::optional<ServingFront> front_;
  std::vector<HttpPath> paths_;
};

TEST_F(ServingFrontTest, MetadataOfServerModelsAndVersions) {
  EXPECT_EQ(*Get("/v2").body, R"({"name":"hdps","version":")" HDPS_VERSION
                              R"(","extensions":["binary_tensor_data"]})");
  EXPECT_EQ(*Get("/v2/models/clicks").body,
            R"({"name":"clicks","versions":["128"],"platform":"hdps","inputs":[)"
            R"({"name":"age","datatype":"FP32","shape":[-1]},)"
            R"({"name":"user","datatype":"BYTES","shape":[-1]}],"outputs":[)"
            R"({"name":"probability","datatype":"FP32","shape":[-1]},)"
            R"({"name":"probabilities","datatype":"FP32","shape":[-1,3]}]})");
  EXPECT_EQ(*Get("/v2/models/clicks/versions/128").body, *Get("/v2/models/clicks").body);
  const std::string status = R"(,"status":{"error_code":"OK","error_message":""}})";
  EXPECT_EQ(*Get("/v1/models/clicks").body,
            R"({"model_version_status":[{"version":"128","state":"AVAILABLE")" + status +
                R"(,{"version":"64","state":"START")" + status +
                R"(,{"version":"192","state":"START")" + status + "]}");
  EXPECT_EQ(*Get("/v1/models/clicks/versions/128").body,
            R"({"model_version_status":[{"version":"128","state":"AVAILABLE")" + status + "]}");
  second_.ready_ = false;
  EXPECT_EQ(*Post("/v2/repository/index", "").body,
            R"([{"name":"clicks","version":"128","state":"READY","reason":""},)"
            R"({"name":"second","version":"","state":"UNAVAILABLE","reason":""}])");
}

TEST_F(ServingFrontTest, ReadyIsWhoHasAllModels) {
  EXPECT_EQ(Get("/v2/health/live").status, 200);
  for (const char* path : {"/v2/health/ready", "/readyz", "/v2/models/second/ready"}) {
    EXPECT_EQ(Get(path).status, 200) << path;
  }
  second_.ready_ = false;
  for (const char* path : {"/v2/health/ready", "/readyz", "/v2/models/second/ready"}) {
    EXPECT_EQ(Get(path).status, 503) << path;
  }
  EXPECT_EQ(*Get("/v2/models/second/ready").body, R"({"name":"second","ready":false})");
  EXPECT_EQ(Get("/v2/models/clicks/ready").status, 200);
  EXPECT_EQ(Get("/healthz").status, 200);
  const HttpAnswer answer = Post("/v1/models/second:predict", kInstances);
  ExpectError(answer, 503, "no version of model 'second' is loaded");
  EXPECT_THAT(answer.headers, Contains(Pair("Retry-After", "1")));
}

TEST_F(ServingFrontTest, QuestionsAreAnsweredAndTold) {
  EXPECT_THAT(*Post("/v2/models/clicks/infer", kInputs).body,
              AllOf(HasSubstr(R"("model_version":"128")"), HasSubstr("[128,128]")));
  EXPECT_THAT(*Post("/v1/models/clicks/versions/128:predict", kInstances).body,
              HasSubstr(R"("predictions":[128,128])"));
  EXPECT_EQ(Post("/v1/models/clicks:lookup", R"({"table": "t", "keys": [5]})").status, 200);
  const std::string json(kInputs);
  EXPECT_EQ(Post("/v2/models/clicks/infer", json,
                 {{"inference-header-content-length", std::to_string(json.size())}})
                .status,
            200);
  ExpectError(Post("/v2/models/clicks/infer", json, {{"inference-header-content-length", "x"}}),
              400, "Inference-Header-Content-Length is 'x'");
  ASSERT_EQ(watch_.seen_.size(), 5U);
  using enum ServingProtocol;
  const std::vector<std::tuple<ServingProtocol, int, uint64_t>> wanted = {{kInferJson, 200, 2},
                                                                          {kPredict, 200, 2},
                                                                          {kLookup, 200, 0},
                                                                          {kInferBinary, 200, 2},
                                                                          {kInferBinary, 400, 0}};
  for (size_t i = 0; i < wanted.size(); ++i) {
    const KeptWatch::Kept& seen = watch_.seen_[i];
    EXPECT_EQ(std::tuple(seen.protocol, seen.code, seen.rows), wanted[i]) << i;
    EXPECT_GE(seen.time_ns, 0);
  }
}

TEST_F(ServingFrontTest, RequestsHaveTheIdOfTheirBodyOrElseOfTheirHeader) {
  const std::string with_id = std::string(kInputs).insert(1, R"("id": "body 1", )");
  EXPECT_THAT(*Post("/v2/models/clicks/infer", with_id).body, HasSubstr(R"("id":"body 1")"));
  const std::map<std::string, std::string, std::less<>> header = {{"x-request-id", "header 2"}};
  Post("/v2/models/clicks/infer", with_id, header);
  Post("/v2/models/clicks/infer", kInputs, header);
  Post("/v1/models/clicks:predict", kInstances, header);
  Post("/v1/models/clicks:predict", kInstances);
  EXPECT_THAT(model_.ids(), ElementsAre("body 1", "body 1", "header 2", "header 2", ""));
  ExpectError(Post("/v1/models/clicks:predict", kInstances,
                   {{"x-request-id", std::string(kRequestIdBytesMax + 1, 'x')}}),
              400, "the header X-Request-Id has 513 bytes: expected at most 512");
}

TEST_F(ServingFrontTest, RequestsThatWaitTogetherAreAnsweredEachWithItsOwn) {
  queue_.joins_ = true;
  std::vector<HttpAnswer> answers(3);
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool infer = i == 1;
    const std::string path = infer ? "/v2/models/clicks/infer" : "/v1/models/clicks:predict";
    PathOf(path).take({path, {}, infer ? kInputs : kInstances},
                      [&answers, i](HttpAnswer answer) { answers[i] = std::move(answer); });
  }
  const std::string other = "/v1/models/second:predict";
  std::optional<HttpAnswer> of_other;
  PathOf(other).take({other, {}, kInstances}, [&](HttpAnswer answer) { of_other = answer; });
  queue_.Run();
  EXPECT_THAT(model_.together(), ElementsAre(3));
  EXPECT_THAT(second_.together(), ElementsAre(1));
  EXPECT_THAT(*answers[0].body, HasSubstr(R"("predictions":[128,128])"));
  EXPECT_THAT(*answers[1].body, HasSubstr(R"("outputs":)"));
  EXPECT_THAT(*answers[2].body, HasSubstr(R"("predictions":[128,128])"));
  ASSERT_TRUE(of_other.has_value());
  EXPECT_EQ(of_other->status, 200);
  EXPECT_EQ(watch_.seen_.size(), 3u);
}

TEST_F(ServingFrontTest, OtherVersionsModelsAndPathsAre404) {
  for (const char* path : {"/v2/models/clicks/versions/64", "/v2/models/clicks/versions/64/ready",
                           "/v1/models/clicks/versions/64"}) {
    ExpectError(Get(path), 404, "model 'clicks' answers as version 128, not as 64");
  }
  ExpectError(Get("/v2/models/clicks/versions/64"), 404, R"(:use with {\"version\": 64})");
  ExpectError(Post("/v2/models/clicks/versions/64/infer", kInputs), 404,
              "version 64 does not answer");
  ExpectError(Post("/v1/models/clicks/versions/64:lookup", R"({"table": "t", "keys": [5]})"), 404,
              "version 64 does not answer");
  ExpectError(Get("/v2/models/click"), 404, "did you mean \\\"clicks\\\"?; there is 'clicks'");
  ExpectError(Post("/v1/models/click:predict", kInstances), 404, "there is no model 'click'");
  ExpectError(Get("/v2/models/clicks/config"), 404, "a model has no 'config' here");
  ExpectError(Post("/v1/models/clicks:classify", "{}"), 404, "there are predict, lookup, use");
  ExpectError(Post("/v1/models/clicks/versions/64:use", "{}"), 404, "no version in its path");
  ExpectError(Get("/v2/models/clicks/versions/x"), 404, "write /v2/models/NAME");
}

TEST_F(ServingFrontTest, OtherMethodsAre405) {
  const HttpAnswer get = Get("/v1/models/clicks:predict");
  ExpectError(get, 405, "POST");
  EXPECT_THAT(get.headers, Contains(Pair("Allow", "POST")));
  ExpectError(Get("/v2/models/clicks/infer"), 405, "POST");
  const HttpAnswer post = Post("/v2/models/clicks", "{}");
  ExpectError(post, 405, "GET");
  EXPECT_THAT(post.headers, Contains(Pair("Allow", "GET, HEAD")));
}

TEST_F(ServingFrontTest, ErrorsOfModelsHaveTheirStatus) {
  const std::vector<std::pair<Code, int>> all = {{Code::kInvalidArgument, 400},
                                                 {Code::kNotFound, 404},
                                                 {Code::kResourceExhausted, 413},
                                                 {Code::kUnavailable, 503},
                                                 {Code::kCorruption, 500}};
  for (const auto& [code, status] : all) {
    model_.refuses_ = code;
    ExpectError(Post("/v1/models/clicks:predict", kInstances), status, "input 'age': refused");
    EXPECT_EQ(watch_.seen_.back().code, status);
  }
  model_.refuses_ = Code::kOk;
  ExpectError(Post("/v1/models/clicks:predict", kInstances, {{"content-encoding", "gzip"}}), 415,
              "Content-Encoding");
  ExpectError(Post("/v1/models/clicks:predict", "{"), 400, "");
}

TEST_F(ServingFrontTest, NothingOfABodyIsReadWhereTheCallIs) {
  std::optional<HttpAnswer> answer;
  PathOf("/v1/models/clicks:predict")
      .take({"/v1/models/clicks:predict", {}, "{"}, [&](HttpAnswer one) { answer = one; });
  EXPECT_FALSE(answer.has_value()) << "the thread of HTTP has read the body";
  queue_.Run();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 400);
}

TEST_F(ServingFrontTest, AFullQueueIs503AndTold) {
  queue_.full_ = true;
  const HttpAnswer answer = Post("/v1/models/clicks:predict", kInstances);
  ExpectError(answer, 503, "as many requests wait as may");
  EXPECT_THAT(answer.headers, Contains(Pair("Retry-After", "1")));
  ASSERT_EQ(watch_.seen_.size(), 1U);
  EXPECT_EQ(watch_.seen_[0].code, 503);
}

TEST_F(ServingFrontTest, UseWantsTheTokenThoughQuestionsAreOpen) {
  const std::string use = "/v1/models/clicks:use";
  EXPECT_TRUE(PathOf("/v1/models/clicks:predict").open);
  EXPECT_TRUE(PathOf("/v2/models/clicks/infer").open);
  EXPECT_FALSE(PathOf(use).open);
  EXPECT_FALSE(PathOf("/v1/models/second:use").open);
  const HttpAnswer taken = Post(use, R"({"version": 64})");
  EXPECT_EQ(taken.status, 202);
  EXPECT_EQ(*taken.body, R"({"version":"64","model_version":"128"})");
  EXPECT_EQ(model_.used_, 64);
  EXPECT_THAT(*Post(use, R"({"version": "newest"})").body, HasSubstr(R"("version":"newest")"));
  EXPECT_EQ(model_.used_, kNoClock);
  ExpectError(Post(use, R"({"version": 7})"), 404, "there are 64, 128, 192");
  EXPECT_TRUE(watch_.seen_.empty()) << "it is no answer of the model";
  Make(false);
  for (const HttpPath& path : paths_) {
    const bool probe = path.path.find("health") != std::string::npos || path.path == "/readyz" ||
                       path.path.ends_with("/ready");
    EXPECT_EQ(path.open, probe) << path.path;
  }
  EXPECT_TRUE(PathOf("/v2/models/second/ready").open);
  EXPECT_FALSE(PathOf("/v2/models/none/ready").open) << "who has no token learns no names";
}

TEST_F(ServingFrontTest, WhoLeavesIsNotReadyAndStillAnswers) {
  front_->Leave();
  EXPECT_EQ(Get("/v2/health/ready").status, 503);
  EXPECT_EQ(Get("/v2/models/clicks/ready").status, 503);
  EXPECT_EQ(Get("/v2/health/live").status, 200);
  EXPECT_EQ(Post("/v1/models/clicks:predict", kInstances).status, 200);
}

TEST_F(ServingFrontTest, TheFirstPageTellsWhatThereIs) {
  const HttpAnswer page = Get("/");
  EXPECT_THAT(*page.body, AllOf(HasSubstr("clicks as version 128"), HasSubstr("/v2/models/NAME")));
}

}  // namespace
}  // namespace hdps
