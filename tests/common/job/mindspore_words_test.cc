// Tests what a job takes of MindSpore's words, and what it answers to the others.
#include "common/job/words/mindspore_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/job/job_registry.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/text/job_sections.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// All sections by their names.
std::map<std::string, const Section*> SectionsOf(const Section& whole) {
  std::map<std::string, const Section*> sections = {{whole.name, &whole}};
  for (const Setting& setting : whole.settings) {
    if (setting.section != nullptr) sections.merge(SectionsOf(*setting.section));
  }
  return sections;
}

std::string Folded(const std::string& word) {
  std::string folded;
  for (const char c : word) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return folded;
}

// Somebody types what he typed for MindSpore: each is refused with the place, the value, and the
// words of a job file that do the same.
TEST(MindSporeWordsTest, ThirtyMistakesAreAnsweredWithTheWordToUse) {
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"parallel.device_target=GPU"}, {"parallel.device_target", "model.device = auto, cpu"}},
      {{"device_target=CPU"}, {"device_target", "word of MindSpore", "model.device"}},
      {{"parallel.enable_ps=true"}, {"parallel.enable_ps", "always at servers"}},
      {{"loss_scale=1024"}, {"loss_scale", "word of MindSpore", "train.loss_scale"}},
      {{"model.deep_optimizer.loss_scale=1024"}, {"deep_optimizer.loss_scale", "32 bits"}},
      {{"parallel.hsdp=true"}, {"parallel.hsdp", "enable_parallel_optimizer"}},
      {{"parallel.shard_size=4"}, {"parallel.shard_size", "parallel_optimizer_config"}},
      {{"model.dense_optimizer=Momentum"},
       {"model.dense_optimizer", "\"Momentum\"", R"({"kind": "momentum"})"}},
      {{"model.dense_optimizer=adam_weight_decay"}, {R"({"kind": "adamw"})"}},
      {{"model.dense_optimizer.kind=LARS"}, {"\"LARS\"", "adamw", "not there"}},
      {{"parallel.parallel_mode=sharding_propagation"},
       {"parallel.parallel_mode", "auto_parallel", "parallel.search_mode"}},
      {{"parallel.mirror_mean=true"}, {"parallel.mirror_mean", "parallel.gradients_mean"}},
      {{"model.device=Ascend"}, {"model.device", "\"Ascend\"", "take cuda, cpu or auto"}},
      {{"parallel.collective=hccl", "parallel.dense_exchange=allreduce"},
       {"parallel.collective", "\"hccl\"", "nccl, gloo or auto"}},
      {{"checkpoint.save_checkpoint_steps=100"},
       {"checkpoint.save_checkpoint_steps", "checkpoint.every_steps"}},
      {{"checkpoint.keep_checkpoint_max=5"}, {"checkpoint.keep"}},
      {{"train.epoch_size=10"}, {"train.epoch_size", "train.epochs"}},
      {{"train.dataset_sink_mode=true"}, {"train.dataset_sink_mode", "nothing to set"}},
      {{"train.amp_level=O2"}, {"train.amp_level", "model.precision"}},
      {{"model.precision=float16"}, {"model.precision", "\"float16\"", "bf16"}},
      {{"model.loss_fn=CrossEntropyLoss"}, {"model.loss_fn", "model.loss"}},
      {{kGraph, "model.layers.1.kind=MatMul"}, {"layers.1.kind", "\"MatMul\"", "dense with units"}},
      {{kGraph, "model.layers.1.out_channels=512"}, {"layers.1.out_channels", "units"}},
      {{kGraph, "model.layers.1.set_comm_fusion=1"}, {"a layer's fusion = n"}},
      {{kGraph, "model.layers.1.in_strategy=[[2, 1]]"}, {"layers.1.in_strategy", "shard"}},
      {{kGraph, "model.layers.1.primitive_target=CPU"}, {"primitive_target", "a layer's device"}},
      {{"parallel.strategy_ckpt_config={}"}, {"strategy_ckpt_save_file"}},
      {{"model.emb_dim=80"}, {"model.emb_dim", "model.embedding_dim"}},
      {{"model.deep_layer_dim=[64]"}, {"model.deep_layer_dim", "model.hidden"}},
      {{"model.keep_prob=0.9"}, {"model.keep_prob", "model.dropout", "1 - keep_prob"}},
      {{"data.num_shards=8"}, {"data.num_shards", "its own part of data.train"}},
      {{"set_seed=1"}, {"set_seed", "seed = n"}},
      {{"train.LossMonitor=100"}, {"train.LossMonitor", "train.log_every_steps"}},
      {{"train.callbacks=1"}, {"train.callbacks", "metrics.jsonl"}},
      {{"train.mode=GRAPH_MODE"}, {"train.mode", "a job is a graph"}},
      {{"parallel.pipeline_stages=2"}, {"parallel.pipeline_stages", "parallel.blocks"}},
      {{"parallel.accumulation_steps=4"}, {"accumulation_steps", "train.micro_batches"}},
  };
  static_assert(std::size(mistakes) >= 30);
  for (const auto& mistake : mistakes) {
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

TEST(MindSporeWordsTest, WordsThatMeanTheSameAreTaken) {
  const std::string all = "parallel.dense_exchange=allreduce";
  const struct {
    std::vector<std::string> theirs, ours;
  } pairs[] = {
      {{"parallel.parallel_mode=DATA_PARALLEL"}, {"parallel.parallel_mode=data_parallel"}},
      {{"parallel.parallel_mode=STAND_ALONE"}, {"parallel.parallel_mode=stand_alone"}},
      {{all, "parallel.parallel_mode=semi_auto"},
       {all, "parallel.parallel_mode=semi_auto_parallel"}},
      {{"parallel.parallel_mode=data_paralel"}, {"parallel.parallel_mode=data_parallel"}},
      {{"parallel.dataset_strategy=data_paralel"}, {"parallel.dataset_strategy=data_parallel"}},
      {{"parallel.dataset_strategy=FULL_BATCH"}, {"parallel.dataset_strategy=full_batch"}},
      {{"model.device=CPU"}, {"model.device=cpu"}},
      {{"model.device=GPU"}, {"model.device=cuda"}},
      {{"train.mode=ASYNC"}, {"train.mode=async"}},
      {{"model.dense_optimizer.kind=Momentum"}, {"model.dense_optimizer.kind=momentum"}},
      {{"model.deep_optimizer.kind=LazyAdam"}, {"model.deep_optimizer.kind=lazy_adam"}},
      {{"model.wide_optimizer.kind=FTRL"}, {"model.wide_optimizer.kind=ftrl"}},
      {{"model.dense_optimizer.kind=AdamWeightDecay"}, {"model.dense_optimizer.kind=adamw"}},
      {{"model.dense_optimizer={\"kind\": \"Adam\", \"eps\": 0.5}"},
       {"model.dense_optimizer={\"kind\": \"adam\", \"epsilon\": 0.5}"}},
      {{"model.loss=SigmoidCrossEntropyWithLogits"}, {"model.loss=logloss"}},
      {{"model.loss=MSELoss"}, {"model.loss=squared_error"}},
      {{"model.type=WideDeep"}, {"model.type=wide_deep"}},
      {{"model.precision=bfloat16"}, {"model.precision=bf16"}},
      {{kGraph, "model.layers.1.kind=Dense"}, {kGraph, "model.layers.1.kind=dense"}},
      {{kGraph, "model.layers.0.kind=EmbeddingLookup"}, {kGraph}},
      {{kGraph, "model.layers.1.activation=LeakyReLU"},
       {kGraph, "model.layers.1.activation=leaky_relu"}},
      {{kGraph, "model.layers.1.weight_init=HeNormal"}, {kGraph, "model.layers.1.init=he_normal"}},
      {{"model.dense_init=XavierUniform"}, {}},
      {{all, "parallel.enable_parallel_optimizer=true",
        R"(parallel.parallel_optimizer_config={"threshold": 24, "shard_size": 2})"},
       {all, "parallel.enable_parallel_optimizer=true",
        R"(parallel.parallel_optimizer_config={"parallel_optimizer_threshold": 24,)"
        R"( "optimizer_weight_shard_size": 2})"}},
  };
  for (const auto& pair : pairs) {
    SCOPED_TRACE(pair.theirs.back());
    const Job theirs = Good(pair.theirs), ours = Good(pair.ours);
    EXPECT_EQ(PrintJob(theirs), PrintJob(ours));
    EXPECT_EQ(JobDigest(theirs), JobDigest(ours));
    EXPECT_EQ(theirs.warnings, ours.warnings);
  }
  const std::string classes = "data.columns.0.classes=[\"no\",\"yes\",\"maybe\"]";
  for (const char* loss : {"SoftmaxCrossEntropyWithLogits", "CrossEntropyLoss", "softmax"}) {
    EXPECT_THAT(Bad({std::string("model.loss=") + loss}), HasSubstr("under softmax")) << loss;
  }
}

// The document has it from 0 to 4095.
TEST(MindSporeWordsTest, GlobalRankIsARankOfTheJob) {
  EXPECT_EQ(Good({"parallel.global_rank=4095"}).parallel.global_rank, 4095);
  EXPECT_EQ(Good({}).parallel.global_rank, -1);
  EXPECT_EQ(JobDigest(Good({"parallel.global_rank=2"})), JobDigest(Good({})));
  for (const char* outside : {"-1", "4096"}) {
    EXPECT_THAT(Bad({std::string("parallel.global_rank=") + outside}),
                AllOf(HasSubstr(std::string("parallel.global_rank: ") + outside),
                      HasSubstr("from 0 to 4095")));
  }
  EXPECT_THAT(Bad({"parallel.device_num=4", "parallel.global_rank=4"}),
              HasSubstr("parallel.global_rank: 4, but device_num is 4; give 0 to 3"));
  EXPECT_THAT(Bad({"parallel.parallel_mode=stand_alone", "parallel.global_rank=1"}),
              AllOf(HasSubstr("parallel.global_rank: 1"), HasSubstr("stand_alone")));
}

// One of two spellings must not win in silence.
TEST(MindSporeWordsTest, BothSpellingsOfAKeyAreRefused) {
  EXPECT_THAT(Bad({kGraph, R"(model.layers.1={"name": "out", "inputs": ["e"], "units": 1,)"
                           R"( "init": "zeros", "weight_init": "ones"})"}),
              HasSubstr("model.layers.1.weight_init: there is no such key"));
}

// A word of a choice could not be read in other letters if they were those of another word.
TEST(MindSporeWordsTest, NoTwoWordsOfAChoiceAreOneInOtherLetters) {
  int words = 0;
  const Section whole = JobSection(BuiltInRegistry());
  for (const auto& [name, section] : SectionsOf(whole)) {
    for (const Setting& setting : section->settings) {
      std::set<std::string> folded;
      for (const std::string& word : setting.words) {
        if (Folded(word).empty()) continue;
        EXPECT_TRUE(folded.insert(Folded(word)).second)
            << name << "." << setting.key << " " << word;
        ++words;
      }
    }
  }
  EXPECT_GT(words, 100);
}

// Each word of the table can be met: it names a place that exists, where it is not a word already,
// and is read as one that is.
TEST(MindSporeWordsTest, EveryWordOfTheTableIsReached) {
  const Section whole = JobSection(BuiltInRegistry());
  const std::map<std::string, const Section*> sections = SectionsOf(whole);
  std::set<std::string> seen;
  for (const MindSporeRow& row : MindSporeRows()) {
    for (const MindSporeWord& word : row.words) {
      const std::string where(word.where), spelled(word.spelled), taken(word.taken_as);
      SCOPED_TRACE(where + " " + spelled);
      EXPECT_TRUE(seen.insert(where + " " + Folded(spelled) + " " + spelled).second) << "twice";
      if (where.empty()) {
        EXPECT_TRUE(taken.empty()) << "a key of any section cannot be one key";
        EXPECT_THAT(AnswerToKey(whole, spelled), HasSubstr("\"" + spelled + "\" is a word of"));
        continue;
      }
      const size_t dot = where.find('.');
      const auto found = sections.find(where.substr(0, dot));
      ASSERT_NE(found, sections.end());
      const Section& section = *found->second;
      const std::string key = where.substr(dot + 1);
      if (key.empty()) {
        EXPECT_EQ(section.Find(spelled), nullptr) << "it is a key there";
        EXPECT_TRUE(taken.empty() || section.Find(taken) != nullptr);
        EXPECT_NE(AnswerToKey(section, spelled), "");
        continue;
      }
      const Setting* const setting = section.Find(key);
      ASSERT_NE(setting, nullptr);
      for (const std::string& own : setting->words) {
        EXPECT_NE(Folded(own), Folded(spelled)) << "it is a word there";
      }
      EXPECT_TRUE(taken.empty() || std::ranges::count(setting->words, taken) == 1);
      EXPECT_NE(AnswerToValue(section, *setting, spelled), "");
    }
  }
  EXPECT_GT(seen.size(), 60u);
}

}  // namespace
}  // namespace hdps
