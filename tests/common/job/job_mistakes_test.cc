// Tests job files: messages for mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/parallel_spec.h"
#include "common/platform/random.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Mistake {
  std::string override_text;
  std::vector<std::string> needles;
};

TEST(JobMistakesTest, OfSchedulesPenaltiesAndClippingAreAnsweredWithPlaceValueAndMend) {
  const Mistake mistakes[] = {
      {"train.schedule.kind=cosin", {"train.schedule.kind", "\"cosin\"", "\"cosine\""}},
      {"train.schedule.kind=step", {"train.schedule", "step", "decay_steps"}},
      {"model.deep_schedule.kind=cosine", {"model.deep_schedule", "decay_steps"}},
      {"train.schedule.warmup=5", {"train.schedule.warmup", "did you mean \"warmup_steps\""}},
      {"train.schedule.decay_steps=0", {"train.schedule.decay_steps", "0", "at least 1"}},
      {"train.schedule={\"kind\": \"step\", \"decay_steps\": 5, \"decay\": 1.5}",
       {"train.schedule.decay", "1.5", "to 1"}},
      {"train.schedule={\"kind\": \"cosine\", \"decay_steps\": 5, \"least\": -0.1}",
       {"train.schedule.least", "-0.1", "from 0 to 1"}},
      {"train.schedule={\"kind\": \"polynomial\", \"decay_steps\": 5, \"power\": 0}",
       {"train.schedule.power", "0"}},
      {"train.clip_norm=-1", {"train.clip_norm", "-1", "from 0"}},
      {"train.clip_value=no", {"train.clip_value", "\"no\"", "a number"}},
      {"train.clip=1", {"train.clip", "no such key"}},
      {"model.deep_loss_l2=-0.1", {"model.deep_loss_l2", "-0.1", "from 0"}},
      {"model.embedding_loss_l2=0.1", {"model.embedding_loss_l2", "no such key"}},
      {"model.dense_init=glorot", {"model.dense_init", "\"glorot\"", "xavier_uniform"}},
      {"model.embedding_init.kind=he_norml", {"embedding_init.kind", "did you mean \"he_normal\""}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.override_text);
    const std::string message = Bad({mistake.override_text});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

TEST(JobMistakesTest, OfEvaluationsAreAnsweredWithPlaceValueAndMend) {
  const Mistake mistakes[] = {
      {"data.validation_share=0.6", {"data.validation_share", "0.6", "from 0 to 0.5"}},
      {"data.eval_sets=[{\"name\":\"late\"}]", {"data.eval_sets.0.files", "missing"}},
      {"data.eval_sets=[{\"name\":\"late\",\"files\":[]}]",
       {"data.eval_sets.0.files", "name at least one"}},
      {"data.eval_sets=[{\"name\":\"\",\"files\":[\"l.csv\"]}]",
       {"data.eval_sets.0.name", "no name"}},
      {"data.eval_sets=[{\"name\":\"" + std::string(70000, 'n') + "\",\"files\":[\"l.csv\"]}]",
       {"data.eval_sets.0.name", "nnn...\" has 70000 bytes", "at most 255"}},
      {"train.early_stop.metric=acu", {"train.early_stop.metric", "\"acu\"", "\"auc\""}},
      {"train.early_stop.min_delta=-1", {"train.early_stop.min_delta", "-1"}},
      {"train.early_stop.patience=-2", {"train.early_stop.patience", "-2"}},
      {"train.plateau.factor=1", {"train.plateau.factor", "1", "to 0.999"}},
      {"train.plateau.least=2", {"train.plateau.least", "2", "from 0 to 1"}},
      {"train.evals_per_epoch=-1", {"train.evals_per_epoch", "-1"}},
      {"checkpoint.every_epochs=1.5", {"checkpoint.every_epochs", "1.5"}},
      {"checkpoint.keep_best=1", {"checkpoint.keep_best", "true or false"}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.override_text);
    const std::string message = Bad({mistake.override_text});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
  const std::string eval = "data.eval=[\"e.csv\"]", patience = "train.early_stop.patience=2";
  const std::string late = "data.eval_sets=[{\"name\":\"late\",\"files\":[\"l.csv\"]}]";
  EXPECT_THAT(Bad({patience, "data.eval=[]"}),
              AllOf(HasSubstr("train.early_stop"), HasSubstr("data.validation_share")));
  EXPECT_THAT(Bad({patience, late, "train.early_stop.set=lat"}),
              AllOf(HasSubstr("train.early_stop.set"), HasSubstr("did you mean \"late\"?")));
  EXPECT_THAT(Bad({eval, "data.eval_sets=[{\"name\":\"eval\",\"files\":[\"l.csv\"]}]"}),
              AllOf(HasSubstr("data.eval_sets.0.name"), HasSubstr("differ")));
  EXPECT_THAT(Bad({"data.validation_share=0.1",
                   "data.eval_sets=[{\"name\":\"validation\",\"files\":[\"l.csv\"]}]"}),
              HasSubstr("data.eval_sets.0.name"));
}

TEST(JobMistakesTest, AreAnsweredWithPlaceValueAndMend) {
  const Mistake mistakes[] = {
      {"train.mode=snyc", {"train.mode", "\"snyc\"", "sync, async, ssp", "did you mean \"sync\"?"}},
      {"train.batchsize=5", {"train.batchsize", "no such key", "\"batch_size\""}},
      {"trian={}", {"trian", "\"train\""}},
      {"parallel.device_num=0", {"device_num", "0", "from 1 to 4096"}},
      {"parallel.device_num=4097", {"device_num", "4097", "from 1 to 4096"}},
      {"parallel.worker_memory_limit=lots", {"worker_memory_limit", "\"lots\"", "4GiB"}},
      {"parallel.search_mode=dynamic", {"search_mode", "\"dynamic\"", "dynamic_programming"}},
      {"parallel.strategy_ckpt_lod_file=a", {"did you mean \"strategy_ckpt_load_file\"?"}},
      {"parallel.parallel_mode=data", {"\"data\"", "stand_alone, data_parallel"}},
      {"parallel={\"full_batch\":true,\"dataset_strategy\":\"data_parallel\"}", {"contradicts"}},
      {"parallel={\"parallel_mode\":\"stand_alone\",\"device_num\":2}",
       {"2 workers", "stand_alone"}},
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
  const Job all = Good({"parallel.device_num=4", "train.batch_size=3", "parallel.full_batch=true"});
  EXPECT_EQ(all.parallel.dataset_strategy, DatasetStrategy::kFullBatch);
}

TEST(JobMistakesTest, OfRegularisedRecipes) {
  EXPECT_THAT(Bad({"model.batch_norm=0.9"}),
              AllOf(HasSubstr("model.batch_norm"), HasSubstr("0.9"), HasSubstr("true or false")));
  EXPECT_THAT(Bad({"model.batchnorm=true"}),
              AllOf(HasSubstr("no such key"), HasSubstr("\"batch_norm\"")));
  EXPECT_THAT(Bad({"model.dropout=1"}),
              AllOf(HasSubstr("model.dropout"), HasSubstr("from 0 to 0.999")));
  EXPECT_THAT(Bad({"model.embedding_dropout=-0.1"}),
              AllOf(HasSubstr("model.embedding_dropout"), HasSubstr("-0.1")));
}

TEST(JobMistakesTest, OfPartsOfAStep) {
  const std::string norm = "model.batch_norm=true", batch = "model.batch_norm_over=batch";
  EXPECT_THAT(Bad({norm, batch, "train.mode=async"}),
              AllOf(HasSubstr("train.mode"), HasSubstr("over = batch"), HasSubstr("use sync"),
                    HasSubstr("model.batch_norm_over")));
  EXPECT_THAT(Bad({norm, batch, "train.mode=ssp", "train.staleness_bound=1"}),
              HasSubstr("use sync"));
  EXPECT_THAT(Bad({norm, "model.batch_norm_over=step"}), HasSubstr("part, batch"));
  EXPECT_THAT(Bad({"train.micro_batches=2", "parallel.grad_accumulation_step=3"}),
              AllOf(HasSubstr("parallel.grad_accumulation_step"), HasSubstr("contradicts"),
                    HasSubstr("give one of them")));
  EXPECT_THAT(Bad({"parallel.device_num=4", "parallel.interleave_num=257"}),
              AllOf(HasSubstr("257 copies"), HasSubstr("a worker's 256")));
  const Mistake mistakes[] = {
      {"parallel.interleave_num=0", {"interleave_num", "0", "from 1"}},
      {"parallel.interleave_num=1025", {"interleave_num", "1025 copies", "1024", "at most one"}},
      {"parallel={\"interleave_num\":300,\"grad_accumulation_step\":4}",
       {"interleave_num", "300 copies", "micro-batch's 256"}},
      {"parallel.grad_accumulation_step=0", {"grad_accumulation_step", "0", "from 1"}},
      {"parallel.grad_accumulation_step=2000", {"grad_accumulation_step", "2000", "1024"}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.override_text);
    const std::string message = Bad({mistake.override_text});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

TEST(JobMistakesTest, WeightsIn16BitsStayAtTheServers) {
  EXPECT_THAT(Bad({"model.weights=fp16", "model.vocab_cache_size=9"}),
              AllOf(HasSubstr("16 bits"), HasSubstr("vocab_cache_size = 9")));
  EXPECT_THAT(Bad({"parallel.wire=fp16", "model.vocab_cache_size=9"}),
              AllOf(HasSubstr("parallel.wire"), HasSubstr("leave out vocab_cache_size")));
  EXPECT_THAT(Bad({"parallel.wire=fp8"}), HasSubstr("bf16"));
  EXPECT_THAT(Bad({"model.weights=fp8"}), HasSubstr("fp16"));
}

TEST(JobMistakesTest, InTheFileAreNamedByTheirLine) {
  EXPECT_THAT(Bad({}, "{\n \"name\": \"x\",\n \"seed\": }"), HasSubstr("job.json:3:"));
  EXPECT_THAT(Bad({}, "{\"seed\": 1,\n\"seed\": 2}"),
              HasSubstr("job.json:2:6: \"seed\" is given twice"));
  EXPECT_THAT(Bad({}, ""), HasSubstr("job.json:1:"));
  EXPECT_THAT(Bad({}, "[]"), HasSubstr("object"));
  EXPECT_THAT(Bad({}, "{}"), HasSubstr("model: it is missing; see docs/job_file.md"));
  EXPECT_THAT(Bad({}, R"({"model": {}})"), HasSubstr("data: it is missing; see docs/job_file.md"));
  EXPECT_THAT(Bad({}, std::string(1000, '[')), HasSubstr("nested too deeply"));
  std::string text = kShort;
  text.replace(text.find("\"c\"}, {\"name\""), 3, "17  ");
  EXPECT_EQ(Bad({}, text),
            "job.json:8: data.columns.2.name: 17 is not a text; as a text it is in quotes, \"17\"");
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
  EXPECT_THAT(graph(e + R"({"name":"a","kind":"activation","inputs":["e"]})"),
              AllOf(HasSubstr("layers.1.activation"), HasSubstr("would do nothing")));
  EXPECT_THAT(graph(e + R"({"name":"a","kind":"batch_norm","inputs":["e"],"momentum":1})"),
              AllOf(HasSubstr("layers.1.momentum"), HasSubstr("from 0.001 to 0.9999")));
  EXPECT_THAT(graph(e + R"({"name":"a","kind":"batch_norm","inputs":["e"],"epsilon":0})"),
              AllOf(HasSubstr("layers.1.epsilon"), HasSubstr("from 1e-12 to 1")));
  EXPECT_THAT(graph(e + R"({"name":"a","kind":"batchnrom","inputs":["e"]})"),
              HasSubstr("did you mean \"batch_norm\"?"));
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

// Covers the settings of recipes, and the layers they are expanded to.
TEST(JobMistakesTest, InRecipesAreAnsweredLikewise) {
  struct Several {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  };
  const Several mistakes[] = {
      {{"model.type=xdeepmf"}, {"model.type", "did you mean \"xdeepfm\"?"}},
      {{"model.type=fibinett"}, {"did you mean \"fibinet\"?"}},
      {{"model.type=pnn", "model.products=iner"},
       {"model.products", "\"iner\"", "inner, outer, both", "did you mean \"inner\"?"}},
      {{"model.type=xdeepfm", "model.cin_maps=0"}, {"model.cin_maps", "0", "from 1 to 4096"}},
      {{"model.type=xdeepfm", "model.cin_maps=3"}, {"3 maps cannot be halved", "split none"}},
      {{"model.type=xdeepfm", "model.cin_levels=17"}, {"model.cin_levels", "17", "from 1 to 16"}},
      {{"model.type=xdeepfm", "model.cin_levels=1.5"}, {"1.5", "a whole number"}},
      {{"model.type=xdeepfm", "model.cin_split=quarter"}, {"\"quarter\"", "half, none"}},
      {{"model.type=fibinet", "model.bilinear=al"}, {"\"al\"", "each, all, interaction"}},
      {{"model.type=fibinet", "model.senet_reduction=0"}, {"model.senet_reduction", "from 1"}},
      {{"model.type=fibinet", "model.deep_features=[\"c\"]"}, {"at least two vectors"}},
      {{"model.type=dcn_mix", "model.cross_experts=65"}, {"model.cross_experts", "from 1 to 64"}},
      {{"model.type=dcn_mix", "model.cross_rank=0"}, {"model.cross_rank", "from 1 to 4096"}},
      {{kGraph, R"(model.layers.1={"name": "p", "kind": "pair_sum", "inputs": ["e"]})",
        R"(model.layers.2={"name": "q", "kind": "outer", "inputs": ["n"]})"},
       {"model.layers.2.inputs", "\"n\" is no layer before this one"}},
      {{kGraph, R"(model.layers.1={"name": "h", "kind": "dense", "inputs": ["e"], "units": 3})",
        R"(model.layers.2={"name": "s", "kind": "scale_vectors", "inputs": ["e", "h"]})"},
       {"model.layers.2.inputs", "\"h\" (width 3)", "a column for each of the 6 vectors"}},
      {{kGraph, R"(model.layers.1={"name": "h", "inputs": ["e"], "units": 3})",
        R"(model.layers.2={"name": "c", "kind": "cin", "inputs": ["h"], "units": 4})"},
       {"model.layers.2.inputs", "does not consist of vectors"}},
      {{kGraph, R"(model.layers.1={"name": "c", "kind": "cin", "inputs": ["e"], "units": 4,)"
                R"( "levels": 2.5})"},
       {"model.layers.1.levels", "2.5", "a whole number from 1 to 16"}},
      {{kGraph, R"(model.layers.1={"name": "b", "kind": "bilinear", "inputs": ["e"],)"
                R"( "matrices": "every"})"},
       {"model.layers.1.matrices", "\"every\"", "each, all, interaction"}},
      {{kGraph, R"(model.layers.1={"name": "x", "kind": "cross_mix", "inputs": ["e"], "units": 2,)"
                R"( "experts": 0})"},
       {"model.layers.1.experts", "0", "a whole number from 1 to 64"}},
  };
  for (const Several& mistake : mistakes) {
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) {
      EXPECT_THAT(message, HasSubstr(needle)) << mistake.overrides.back();
    }
  }
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

TEST(JobMistakesTest, OfColumnsLossesAndMetricsAreAnsweredToo) {
  const Mistake mistakes[] = {
      {"data.columns.2.type=weigth", {"data.columns.2.type", "\"weigth\"", "\"weight\""}},
      {"data.item_features=[\"cc\"]", {"data.item_features", "\"cc\"", "did you mean \"c\"?"}},
      {"data.item_features=[\"pair\"]", {"data.item_features", "\"pair\"", "of the files"}},
      {"data.item_features=[\"c\",\"c\"]", {"data.item_features", "\"c\"", "twice"}},
      {"data.negatives={\"per_positive\":4}",
       {"data.item_features", "data.negatives", "name them"}},
      {"data.negatives={\"per_positive\":-1}", {"data.negatives.per_positive", "-1", "0 to 1000"}},
      {"data.negatives={\"by\":\"popularity\"}", {"data.negatives.by", "uniform, frequency"}},
      {"model.loss=bpr", {"model.loss", "bpr", "type group", "add one"}},
      {"model.loss=squared", {"model.loss", "\"squared\"", "squared_error"}},
      {"model.loss=sampled_softmax", {"towers"}},
      {"model.positive_weight=0", {"model.positive_weight", "0", "1e-06"}},
      {"model.tasks=[{\"label\":\"yy\"}]",
       {"model.tasks.0.label", "\"yy\"", "did you mean \"y\"?"}},
      {"model.tasks=[{\"label\":\"y\"},{\"label\":\"y\"}]", {"logit", "2 wide"}},
      {"model.tasks=[{\"label\":\"y\",\"loss\":\"softmax\"}]",
       {"model.tasks.0.loss", "\"softmax\"", "logloss, squared_error"}},
      {"model.tasks=[{\"label\":\"y\",\"weight\":-1}]", {"model.tasks.0.weight", "-1"}},
      {"train.metrics=[\"aux\"]", {"train.metrics.0", "\"aux\"", "did you mean \"auc\"?"}},
      {"train.metrics=[\"hr@0\"]", {"train.metrics.0", "\"hr@0\"", "hr@10"}},
      {"train.metrics=[\"auc\",\"auc\"]", {"train.metrics.1", "twice"}},
      {"train.metrics=[\"rmse\"]", {"train.metrics.0", "\"rmse\"", "logloss"}},
      {"train.metrics=[\"group_auc\"]", {"train.metrics.0", "group", "add one"}}};
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.override_text);
    const std::string message = Bad({mistake.override_text});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

// Covers mistakes that involve more than one setting.
TEST(JobMistakesTest, OfLossesTellWhatTheyNeed) {
  using ::testing::ElementsAre;
  EXPECT_THAT(Bad({"data.columns.2.type=weight", "data.columns.3.type=weight", "data.features=[]"}),
              AllOf(HasSubstr("data.columns"), HasSubstr("2 columns are of type weight")));
  EXPECT_THAT(Bad({"data.columns.0.positive=[\"yes\"]", "model.loss=squared_error"}),
              AllOf(HasSubstr("positive texts"), HasSubstr("it is a number")));
  EXPECT_THAT(Bad({"data.columns.4.type=label", "model.tasks=[{\"label\":\"y\"}]", "model.type=mlp",
                   "data.columns.1.type=numeric"}),
              HasSubstr("the label \"e\" is that of no task"));
  EXPECT_THAT(Bad({"data.format=libsvm", "data.columns=[]", "data.features=[]",
                   "model.type=logistic", "model.tasks=[{\"label\":\"y\"}]"}),
              AllOf(HasSubstr("model.tasks"), HasSubstr("libsvm"), HasSubstr("csv")));
  EXPECT_THAT(Bad({"data.item_features=[\"c\"]", "data.negatives={\"per_positive\":2}",
                   "model.loss=squared_error"}),
              AllOf(HasSubstr("data.negatives.per_positive"), HasSubstr("label of 0 or 1")));
  // Settings without an effect are named.
  EXPECT_THAT(Good({"data.item_features=[\"c\"]"}).warnings,
              ElementsAre(HasSubstr("data.item_features is ignored")));
  EXPECT_THAT(Good({"data.negatives={\"by\":\"uniform\"}"}).warnings,
              ElementsAre(HasSubstr("data.negatives.by is ignored")));
  EXPECT_THAT(Good({"model.positive_weight=3", "model.loss=squared_error"}).warnings,
              ElementsAre(HasSubstr("model.positive_weight is ignored")));
  EXPECT_THAT(Good({"data.columns.4.type=group"}).warnings,
              ElementsAre(HasSubstr("the group column \"e\" has no effect")));
  EXPECT_THAT(Good({"data.columns.4.type=group", "train.metrics=[\"hr@5\"]"}).warnings,
              ElementsAre());
}

// The digest tells whether they change results, and a job prints as it was read.
TEST(JobMistakesTest, LossesAndMetricsSurvivePrinting) {
  const Job plain = Good({});
  EXPECT_EQ(JobDigest(Good({"train.metrics=[\"auc\",\"ece\"]"})), JobDigest(plain));
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {"model.positive_weight=2"},
           {"model.loss=squared_error"},
           {"model.tasks=[{\"label\":\"y\",\"weight\":0.5,\"positive_weight\":3}]"},
           {"data.columns.4.type=weight"},
           {"data.item_features=[\"c\",\"d\"]",
            "data.negatives={\"per_positive\":3,\"by\":\"uniform\"}"}}) {
    const Job job = Good(overrides);
    EXPECT_NE(JobDigest(job), JobDigest(plain)) << overrides[0];
    const Job again = Good({}, PrintJob(job));
    EXPECT_EQ(PrintJob(again), PrintJob(job));
    EXPECT_EQ(JobDigest(again), JobDigest(job));
  }
}

}  // namespace
}  // namespace hdps
