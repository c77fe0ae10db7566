// Job files: the table of keys, and how mistakes are answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/text/job_schema.h"
#include "common/platform/random.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- The table of keys -------------------------------------------------------------------------

// Where a key of the table can be set in one of the jobs above, and what makes it count there.
struct Place {
  std::vector<std::string> overrides;
  std::string path;
};

Place PlaceOf(const KeySpec& spec) {
  const std::string section(spec.section), condition(spec.only_if);
  Place place;
  std::string object = section == "job" ? "" : section + ".";
  if (section == "column")
    object = condition == "type=label" ? "data.columns.0." : "data.columns.4.";
  if (section == "feature") object = "data.features.2.";
  if (section == "optimizer") object = "model.deep_optimizer.";
  if (section == "init") object = "model.embedding_init.";
  if (section == "policy") object = "model.policy.";
  if (section == "table") object = "model.tables.0.";
  if (section == "layer")
    object = condition == "kind=embedding" ? "model.layers.0." : "model.layers.1.";
  if (section == "table" || section == "layer") place.overrides.push_back(kGraph);
  if (condition == "format=criteo") place.overrides.push_back("data.features=[]");
  if (section == "init") place.overrides.push_back("model.embedding_init={}");
  if (!condition.empty() && condition != "type=label" && condition != "kind=embedding") {
    const std::string first = condition.substr(0, condition.find('|'));
    const bool absolute = first.find('.') < first.find('=');
    if (spec.key == "mean" || spec.key == "scale") {
      if (section == "column") place.overrides.push_back(object + "type=numeric");
    }
    place.overrides.push_back((absolute ? "" : object) + first);
  }
  place.path = object + std::string(spec.key);
  return place;
}

TEST(JobKeysTest, DefaultsOfTheTableAreThoseOfTheStructs) {
  int compared = 0;
  for (const KeySpec& spec : JobKeys()) {
    if (spec.default_text.empty()) continue;
    Place place = PlaceOf(spec);
    SCOPED_TRACE(place.path);
    if (spec.key == "train" || spec.section == "feature" || spec.key == "columns" ||
        spec.key == "features" || spec.key == "name" || spec.key == "layers" ||
        spec.section == "layer" || spec.key == "tables" || spec.key == "type") {
      continue;  // The job above needs another value there.
    }
    const Result<Job> without = ParseJob(kShort, "job.json", place.overrides);
    place.overrides.push_back(place.path + "=" + std::string(spec.default_text));
    const Result<Job> with = ParseJob(kShort, "job.json", place.overrides);
    ASSERT_TRUE(without.ok()) << without.status().message();
    ASSERT_TRUE(with.ok()) << with.status().message();
    EXPECT_EQ(PrintJob(*with), PrintJob(*without));
    EXPECT_EQ(with->warnings, without->warnings);
    ++compared;
  }
  EXPECT_GT(compared, 45);
}

TEST(JobKeysTest, EveryKeyRefusesAnotherTypeAndSaysWhereAndWhat) {
  for (const KeySpec& spec : JobKeys()) {
    const Place place = PlaceOf(spec);
    SCOPED_TRACE(place.path);
    for (const char* wrong : {"null", "{\"odd\": 1}", "[[]]"}) {
      std::vector<std::string> overrides = place.overrides;
      overrides.push_back(place.path + "=" + wrong);
      EXPECT_THAT(Bad(overrides), HasSubstr("--set: " + place.path));
    }
  }
}

TEST(JobKeysTest, EveryRangeIsChecked) {
  int ranges = 0;
  for (const KeySpec& spec : JobKeys()) {
    if (spec.kind != KeyKind::kInteger && spec.kind != KeyKind::kNumber) continue;
    const Place place = PlaceOf(spec);
    SCOPED_TRACE(place.path);
    std::vector<std::string> outside = {"-1", "1.5", "\"7\"", "true"};
    if (spec.kind == KeyKind::kNumber) outside = {"-1e+301", "1e+301", "\"7\"", "true"};
    if (spec.min == 1) outside.push_back("0");
    if (spec.max < 9e15 && spec.kind == KeyKind::kInteger) {
      outside.push_back(std::to_string(static_cast<int64_t>(spec.max) + 1));
    }
    for (const std::string& value : outside) {
      std::vector<std::string> overrides = place.overrides;
      overrides.push_back(place.path + "=" + value);
      EXPECT_THAT(Bad(overrides), HasSubstr("--set: " + place.path + ": " + value));
    }
    ++ranges;
  }
  EXPECT_GT(ranges, 30);
}

TEST(JobKeysTest, IgnoredKeysWarnAndLeaveNoTrace) {
  const Job job = Good({"train.staleness_bound=3", "parallel.collective=gloo",
                        "model.cross_layers=2", "model.deep_optimizer.l1=0.5"});
  EXPECT_EQ(job.warnings.size(), 3u) << job.warnings[0];
  EXPECT_THAT(job.warnings, Contains(HasSubstr("collective is ignored")));
  EXPECT_EQ(job.train.staleness_bound, 0u);
  EXPECT_EQ(PrintJob(Good({"model.deep_optimizer={}"})), PrintJob(Good({})));
  EXPECT_THAT(
      Good({kGraph, "model.hidden=[3]"}).warnings,
      ElementsAre("model.hidden is ignored: it counts only where type is wide_deep or deepfm "
                  "or dcn_v2 or dlrm or mlp"));
}

// Whether docs/job_file.md holds `wanted` between two marks; if not, it is written out.
void ExpectInReference(const std::string& mark, const std::string& wanted) {
  const std::string doc = ReadText("docs/job_file.md");
  const std::string begin = "<!-- " + mark + " -->\n", end = "<!-- end of " + mark + " -->";
  const size_t from = doc.find(begin), to = doc.find(end);
  ASSERT_NE(from, doc.npos);
  ASSERT_NE(to, doc.npos);
  if (doc.substr(from + begin.size(), to - from - begin.size()) == wanted) return;
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string path = ::testing::TempDir() + "job_" + mark + ".md";
  EXPECT_TRUE(WriteFileAtomically(*files, path, wanted).ok());
  ADD_FAILURE() << "put " << path << " between the marks of docs/job_file.md";
}

TEST(JobKeysTest, ReferenceIsUpToDate) {
  ExpectInReference("keys", PrintKeyReference());
  ExpectInReference("layers", "\n" + PrintLayerReference(BuiltInLayers()) + "\n");
}

// ---- Mistakes ----------------------------------------------------------------------------------

TEST(JobMistakesTest, AreAnsweredWithPlaceValueAndMend) {
  struct Mistake {
    std::string override_text;
    std::vector<std::string> needles;
  };
  const Mistake mistakes[] = {
      {"train.mode=snyc", {"train.mode", "\"snyc\"", "sync, async, ssp", "did you mean \"sync\"?"}},
      {"train.batchsize=5", {"train.batchsize", "no such key", "\"batch_size\""}},
      {"trian={}", {"trian", "\"train\""}},
      {"parallel.device_num=0", {"device_num", "0", "from 1 to 4096"}},
      {"parallel.device_num=4097", {"device_num", "4097", "from 1 to 4096"}},
      {"parallel.parallel_mode=auto_parallel", {"not built: use data_parallel"}},
      {"parallel.parallel_mode=data", {"\"data\"", "stand_alone, data_parallel"}},
      {"parallel={\"full_batch\":true,\"dataset_strategy\":\"data_parallel\"}", {"contradicts"}},
      {"parallel={\"parallel_mode\":\"stand_alone\",\"device_num\":2}",
       {"2 workers", "stand_alone"}},
      {"parallel.comm_fusion={}", {"comm_fusion", "MindSpore", "leave it out"}},
      {"parallel.interleave_num=2", {"use train.micro_batches"}},
      {"cluster.shards=48", {"cluster.shards", "48", "power of two", "64"}},
      {"cluster.dead_after_ms=600", {"600", "two heartbeats", "1000"}},
      {"cluster.request_timeout_s=1", {"request_retry_ms"}},
      {"train.micro_batches=2000", {"2000", "1024"}},
      {"data.train=[]", {"data.train", "name at least one"}},
      {"data.train=a.csv", {"data.train", "\"a.csv\"", "list of texts"}},
      {"data.delimiter=;;", {"data.delimiter", "\";;\"", "one character"}},
      {"data.columns=[]", {"data.columns"}},
      {"data.columns.0.type=skip", {"data.columns", "0 columns", "label"}},
      {"data.columns.2.type=label", {"2 columns", "exactly one"}},
      {"data.columns.3.name=c", {"data.columns.3.name", "\"c\"", "differ"}},
      {"data.columns.5.name=", {"data.columns.5.name", "no name"}},
      {"data.columns.9.name=z", {"data.columns.9.name", "5 items", "\"9\""}},
      {"data.columns.1={\"name\":\"x\",\"type\":\"numeric\",\"transform\":\"standardize\","
       "\"scale\":0}",
       {"data.columns.1.scale", "0 cannot divide"}},
      {"data.columns.4={\"name\":\"e\",\"type\":\"multi\",\"separator\":\",\"}",
       {"data.columns.4.separator", "delimiter"}},
      {"data.features.0.boundaries=[1,3,2]", {"boundaries", "2", "after 3", "ascend"}},
      {"data.features.0.boundaries=[]", {"boundaries", "at least one"}},
      {"data.features.0.from=[\"c\"]", {"\"c\"", "no numeric column"}},
      {"data.features.1.from=[\"c\",\"x\"]", {"\"x\"", "bucketized"}},
      {"data.features.1.from=[\"c\"]", {"1 names", "two or more"}},
      {"data.features.1.from=[\"c\",\"rnage\"]", {"\"rnage\"", "did you mean \"range\"?"}},
      {"data.features.0.name=c", {"data.features.0.name", "another column"}},
      {"model.type=dlm", {"model.type", "\"dlrm\""}},
      {"model.type=graph", {"model.type", "model.layers"}},
      {"model.wide_features=[\"C27\"]", {"model.wide_features", "\"C27\""}},
      {"model.deep_optimizer.kind=lamb", {"optimizer", "lamb", "adamw"}},
      {"model.deep_optimizer.kind=adamm", {"\"adamm\"", "\"adam\""}},
      {"model.deep_optimizer.learning_rate=NaN", {"learning_rate", "\"NaN\"", "a number"}},
      {"model.loss=softmax", {"softmax", "2 wide"}},
      {"model.hidden=[64,0]", {"model.hidden", "[64, 0]"}},
      {"seed=-1", {"seed", "-1"}},
      {"seed=18446744073709551616", {"seed"}},
      {"train", {"\"train\"", "key.path=value"}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.override_text);
    const std::string message = Bad({mistake.override_text});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
  EXPECT_THAT(Bad({"parallel.device_num=4", "train.batch_size=3"}), HasSubstr("full_batch"));
  EXPECT_THAT(Bad({"train.mode=async", "model.vocab_cache_size=9"}),
              AllOf(HasSubstr("vocab_cache_size = 9"), HasSubstr("use sync")));
  EXPECT_THAT(Bad({"model.policy.admit_after=3", "model.vocab_cache_size=9"}),
              AllOf(HasSubstr("vocab_cache_size = 9"), HasSubstr("admission")));
  EXPECT_EQ(Good({"parallel.device_num=4", "train.batch_size=3", "parallel.full_batch=true"})
                .parallel.dataset_strategy,
            DatasetStrategy::kFullBatch);
}

TEST(JobMistakesTest, WeightsIn16BitsStayAtTheServers) {
  EXPECT_THAT(Bad({"model.weights=fp16", "model.vocab_cache_size=9"}),
              AllOf(HasSubstr("16 bits"), HasSubstr("vocab_cache_size = 9")));
  EXPECT_THAT(Bad({"parallel.wire=fp16", "model.vocab_cache_size=9"}),
              AllOf(HasSubstr("parallel.wire"), HasSubstr("leave out vocab_cache_size")));
  EXPECT_THAT(Bad({"parallel.wire=fp8"}), HasSubstr("bf16"));
  EXPECT_THAT(Bad({"parallel.gradient_fp32_sync=false"}), HasSubstr("set wire to fp16"));
  EXPECT_THAT(Bad({"model.weights=fp8"}), HasSubstr("fp16"));
}

TEST(JobMistakesTest, InTheFileAreNamedByTheirLine) {
  EXPECT_THAT(Bad({}, "{\n \"name\": \"x\",\n \"seed\": }"), HasSubstr("job.json:3:"));
  EXPECT_THAT(Bad({}, "{\"seed\": 1,\n\"seed\": 2}"),
              HasSubstr("job.json:2:6: \"seed\" is given twice"));
  EXPECT_THAT(Bad({}, ""), HasSubstr("job.json:1:"));
  EXPECT_THAT(Bad({}, "[]"), HasSubstr("object"));
  EXPECT_THAT(Bad({}, "{}"), HasSubstr("data: it is missing"));
  EXPECT_THAT(Bad({}, std::string(1000, '[')), HasSubstr("nested too deeply"));
  std::string text = kShort;
  text.replace(text.find("\"c\"}, {\"name\""), 3, "17  ");
  EXPECT_EQ(Bad({}, text), "job.json:8: data.columns.2.name: 17 is not a text");
  text = kShort;
  text.replace(text.find("2.5"), 3, "0.5");
  EXPECT_EQ(Bad({}, text),
            "job.json:11: data.features.0.boundaries: 0.5 after 1.0; boundaries have to ascend");
}

TEST(JobMistakesTest, InAGraphNameTheLayer) {
  const auto graph = [](const std::string& layers) {
    return Bad({"model={\"type\":\"graph\",\"tables\":[{\"name\":\"t\",\"dim\":4}],\"layers\":[" +
                layers + "]}"});
  };
  const std::string e = R"({"name":"e","kind":"embedding","table":"t"},)";
  EXPECT_THAT(graph(R"({"name":"a","inputs":["nowhere"],"units":1})"), HasSubstr("\"nowhere\""));
  EXPECT_THAT(graph(R"({"name":"a","kind":"embedding","table":"u"})"), HasSubstr("model.tables"));
  EXPECT_THAT(graph(e + R"({"name":"a","kind":"fm","inputs":["e","e"]})"), HasSubstr("2 inputs"));
  EXPECT_THAT(graph(e + R"({"name":"a","inputs":["e"]})"), HasSubstr("units"));
  EXPECT_THAT(graph(e + R"({"name":"a","inputs":["e"],"units":2})"), HasSubstr("1 wide"));
  EXPECT_THAT(graph(e + R"({"name":"e","inputs":["e"],"units":1})"), HasSubstr("all different"));
  EXPECT_THAT(
      graph(e + R"({"name":"n","kind":"numeric"},{"name":"s","kind":"sum","inputs":["e","n"]})"),
      HasSubstr("(width 24) and \"n\" (width 1)"));
  EXPECT_THAT(
      graph(e + R"({"name":"n","kind":"numeric"},{"name":"d","kind":"dot","inputs":["e","n"]})"),
      HasSubstr("as wide as a row"));
  EXPECT_THAT(graph(e + R"({"name":"n","kind":"numeric"},{"name":"a","inputs":["e"],"units":1})"),
              HasSubstr("\"n\" is used by no layer"));
  EXPECT_THAT(graph(R"({"name":"n","kind":"numeric"},{"name":"a","inputs":["n"],"units":1})"),
              HasSubstr("\"t\" is used by no layer"));
  EXPECT_THAT(graph(R"({"name":"n","kind":"numeric"})"),
              HasSubstr("nothing below the last layer, \"n\" (width 1), learns"));
}

TEST(JobMistakesTest, NoDamagedTextStopsTheProcess) {
  const std::string good = PrintJob(Good({}));
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (uint64_t n = random.Below(4) + 1; n > 0; --n) {
      const size_t at = random.Below(text.size());
      if (random.Below(3) == 0) {
        text.erase(at, random.Below(40));
      } else {
        text[at] = static_cast<char>(random.Below(256));
      }
      if (text.empty()) break;
    }
    const Result<Job> job = ParseJob(text, "job.json", {});
    if (job.ok()) continue;
    EXPECT_THAT(job.status().message(), HasSubstr("job.json"));
  }
}

}  // namespace
}  // namespace hdps
