// Sends requests that lie, are cut or are changed at random: each is read or refused with words,
// in memory that its bytes bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "common/platform/random.h"
#include "tests/tools/serve/requests/memory_peak.h"
#include "tests/tools/serve/requests/request_bodies.h"
#include "tools/serve/requests/request_forms.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

// simdjson takes 14 times the bytes, and cells grow by doubling.
constexpr size_t kTimesOfBody = 40, kFixedBytes = 64 << 10;

using Read = std::function<Status(const Body&)>;

// Reads all cells of an accepted request and writes an answer to it.
Status UseScore(Result<AskedScore> asked) {
  if (!asked.ok()) return asked.status();
  const ColumnTable& table = *asked->request.rows;
  EXPECT_LE(table.num_rows(), kRequestRowsMax);
  for (const auto& [name, cells] : CellsOf(table)) EXPECT_EQ(cells.size(), table.num_rows());
  ScoreAnswer answer;
  answer.rows = table.num_rows();
  answer.outputs.push_back({"probability", 1, std::vector<float>(table.num_rows()), {}});
  EXPECT_FALSE(asked->write(answer).body.empty());
  return {};
}
Status Infer(const Body& body) {
  return UseScore(ReadInfer(SmallModel(), body.bytes, body.json_bytes));
}
Status Predict(const Body& body) { return UseScore(ReadPredict(SmallModel(), body.bytes)); }
Status Lookup(const Body& body) { return ReadLookup(body.bytes).status(); }
Status Use(const Body& body) { return ReadUse(body.bytes).status(); }

// Reads the body within its bound of memory.
Status Bounded(const Read& read, const Body& body) {
  BeginMemoryPeak();
  Status status = read(body);
  if (CountsMemory()) {
    EXPECT_LE(MemoryPeak(), kTimesOfBody * body.bytes.size() + kFixedBytes)
        << status.message() << " of " << body.bytes.substr(0, 300);
  }
  if (!status.ok()) {
    EXPECT_TRUE(status.code() == Code::kInvalidArgument ||
                status.code() == Code::kResourceExhausted)
        << CodeName(status.code());
    EXPECT_FALSE(status.message().empty());
    EXPECT_LE(status.message().size(), 4096u);
  }
  return status;
}

const std::vector<Read> kReads = {Infer, Predict, Lookup, Use};

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HostileRequests, DepthHasABound) {
  const std::string deep = Repeated("[", 1000) + Repeated("]", 1000);
  for (const std::string& body :
       {deep, R"({"inputs":)" + deep + "}", R"({"instances":)" + deep + "}",
        R"({"table":"t","keys":)" + deep + "}",
        Repeated(R"({"version":)", 1000) + Repeated("}", 1000)}) {
    for (const Read& read : kReads) {
      EXPECT_THAT(Bounded(read, {body}).message(), HasSubstr("nested more than 64 deep"));
    }
  }
}

// The largest bodies, of what takes the most memory.
TEST(HostileRequests, LargeBodiesHaveABound) {
  const size_t size = kRequestBytesMax;
  const std::string begin = R"({"instances":[)", inputs = R"({"inputs":[)";
  const std::string values = inputs +
                             R"({"name":"id","shape":[8192,1000],"datatype":"INT8","data":[)" +
                             Repeated("0,", 8192 * 1000 - 1);
  EXPECT_TRUE(Bounded(Infer, {values + "0]}]}"}).ok());
  for (const std::string& body :
       {Repeated("[", size), Repeated("{\"a\":", size / 5), std::string(size, '"'),
        std::string(size, ' '), begin + Repeated("0,", size / 2 - 20) + "0]}",
        inputs + Repeated("{},", size / 3 - 20) + "{}]}", values + "0,0]}]}",
        R"({"inputs":[{"name":")" + std::string(size - 40, 'x') + "\"}]}",
        R"({"table":"t","keys":[")" + std::string(size - 40, '1') + "\"]}"}) {
    ASSERT_LE(body.size(), size);
    for (const Read& read : kReads) EXPECT_FALSE(Bounded(read, {body}).ok());
  }
}

TEST(HostileRequests, EachCutBodyIsRefused) {
  const Body binary = InferBody(SmallInputs(), "", [](size_t i) { return i % 2 == 1; });
  for (size_t cut = 0; cut < binary.bytes.size(); ++cut) {
    EXPECT_FALSE(Bounded(Infer, {binary.bytes.substr(0, cut), binary.json_bytes}).ok()) << cut;
    EXPECT_FALSE(Bounded(Infer, {binary.bytes.substr(0, cut)}).ok()) << cut;
  }
  for (const std::string& body : {SmallInstances(), SmallColumns()}) {
    for (size_t cut = 0; cut < body.size(); ++cut) {
      EXPECT_FALSE(Bounded(Predict, {body.substr(0, cut)}).ok()) << cut;
    }
  }
}

// Changes a body in a way that keeps most of it.
Body Mutated(Body body, Random& random) {
  static const std::vector<std::string> kWords = {"[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "null",
                                                  "true",
                                                  "-1",
                                                  "1e400",
                                                  "NaN",
                                                  "0.1",
                                                  "9223372036854775808",
                                                  "18446744073709551616",
                                                  "[8192]",
                                                  "[9223372036854775808,2]",
                                                  "\\u0000",
                                                  "\"FP32\"",
                                                  "\"BYTES\"",
                                                  "\"INT64\"",
                                                  "\"data\":",
                                                  "\xff\xff\xff\xff",
                                                  std::string(4, '\0')};
  std::string& bytes = body.bytes;
  for (uint64_t changes = 1 + random.Below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random.Below(bytes.size());
    const size_t size = 1 + random.Below(8);
    switch (random.Below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        bytes.erase(at, size);
        break;
      case 2:
        bytes.insert(at, kWords[random.Below(kWords.size())]);
        break;
      case 3:
        bytes.replace(at, size, kWords[random.Below(kWords.size())]);
        break;
      case 4:
        bytes.insert(at, bytes.substr(random.Below(bytes.size()), random.Below(64)));
        break;
      default:
        if (body.json_bytes) *body.json_bytes += random.Below(9) - 4;
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.Below(8));
    }
  }
  return body;
}

TEST(HostileRequests, RandomChangesAreReadOrRefused) {
  const std::string rest = R"(,"id":"7","parameters":{"binary_data_output":true,"k":2},
      "outputs":[{"name":"top_k"},{"name":"probability","parameters":{"binary_data":false}}])";
  struct Form {
    const char* name;
    Read read;
    Body body;
  };
  const std::vector<Form> forms = {
      {"infer", Infer, InferBody(SmallInputs(), rest, [](size_t) { return false; })},
      {"infer, binary", Infer, InferBody(SmallInputs(), rest, [](size_t) { return true; })},
      {"predict, rows", Predict, {SmallInstances()}},
      {"predict, columns", Predict, {SmallColumns()}},
      {"lookup", Lookup, {R"({"table":"t","feature":"color","values":["a",5,null]})"}},
      {"use", Use, {R"({"version":"512"})"}}};
  constexpr int kMutations = 100'000;
  for (const Form& form : forms) {
    ASSERT_TRUE(Bounded(form.read, form.body).ok()) << form.name;
    Random random(1);
    int accepted = 0;
    for (int i = 0; i < kMutations; ++i) {
      accepted += Bounded(form.read, Mutated(form.body, random)).ok();
      if (HasFailure()) FAIL() << form.name << ", change " << i;
    }
    std::printf("figure: %s: %d of %d changed requests are right ones\n", form.name, accepted,
                kMutations);
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, kMutations / 2);
  }
}

}  // namespace
}  // namespace hdps
