// Tests the strategy from shards, blocks and files, and messages for mistakes.
#include "common/planning/strategy_of_job.h"

#include <gmock/gmock.h>

#include "common/job/spec/parallel_spec.h"
#include "common/job/strategy/strategy_file.h"
#include "tests/common/planning/planning_samples.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

Strategy Found(const std::vector<std::string>& overrides, uint32_t workers) {
  const Result<Strategy> strategy = StrategyOf(GoodJob(overrides), workers);
  EXPECT_TRUE(strategy.ok()) << strategy.status().message();
  return strategy.ok() ? *strategy : Strategy();
}

std::string Refused(const Job& job, uint32_t workers) {
  const Result<Strategy> strategy = StrategyOf(job, workers);
  EXPECT_FALSE(strategy.ok());
  EXPECT_EQ(strategy.status().code(), Code::kInvalidArgument);
  return strategy.status().message();
}

TEST(StrategyOfJobTest, HybridIsWhatIsWrittenAndTheRestDataParallel) {
  EXPECT_TRUE(Found({}, 4).data_parallel());
  const Strategy columns = Found({"model.layers.1.shard=[1,4]"}, 4);
  EXPECT_EQ(columns.layers[1], (LayerSplit{1, 1, 4}));
  EXPECT_EQ(columns.layers[3], OwnRowsSplit(4));
  EXPECT_EQ(Found({"model.layers.1.shard=[2,1]"}, 4).layers[1], (LayerSplit{2, 2, 1}));
  EXPECT_EQ(Found({"model.layers.1.shard=[[1,2],[2,1]]"}, 4).layers[1], (LayerSplit{1, 2, 1}));
  EXPECT_EQ(Found({"model.layers.2.shard=[2,2]"}, 4).layers[2], (LayerSplit{2, 1, 2}));
  EXPECT_EQ(Found({"model.layers.0.shard=[1,2]"}, 2).layers[0], (LayerSplit{1, 1, 2}));
  EXPECT_EQ(Found({"parallel.blocks=[{\"layers\":[\"one\"],\"shard\":[1,2]}]"}, 2).layers[1],
            (LayerSplit{1, 1, 2}));
}

TEST(StrategyOfJobTest, AFileKeepsAStrategyThatAPersonCanEdit) {
  Job job = GoodJob({"model.layers.1.shard=[1,4]"});
  const Strategy strategy = *StrategyOf(job, 4);
  const std::string text = PrintStrategyFile(KeptOf(job, strategy));
  EXPECT_THAT(text, HasSubstr("    {\"name\": \"one\", \"kind\": \"dense\", \"examples\": 1, "
                              "\"inputs\": 1, \"columns\": 4},\n"));
  Job loads = GoodJob({});
  loads.parallel.kept_strategy = *ParseStrategyFile(text, "s.json");
  EXPECT_EQ(*StrategyOf(loads, 4), strategy);
  EXPECT_EQ(JobDigest(loads), JobDigest(GoodJob({}))) << "a checkpoint goes on in any strategy";
  EXPECT_THAT(StrategyLine(loads, strategy), HasSubstr("loaded from s.json, nothing was planned"));
  EXPECT_THAT(Refused(loads, 2), testing::AllOf(HasSubstr("s.json"), HasSubstr("for 4 workers"),
                                                HasSubstr("there are 2")));
  Job other = GoodJob({"model.layers.1.units=16"});
  other.parallel.kept_strategy = loads.parallel.kept_strategy;
  EXPECT_THAT(Refused(other, 4), testing::AllOf(HasSubstr("graph"), HasSubstr("plan again")));
  loads.parallel.kept_strategy->strategy.layers[4] = {1, 1, 4};
  EXPECT_THAT(Refused(loads, 4), testing::AllOf(HasSubstr("layers.4 (\"drop\")"),
                                                HasSubstr("4 parts of the examples")));
}

TEST(StrategyOfJobTest, AKeptStrategyGoesTogetherWithTheDataThatIsCut) {
  const std::string by_features = "parallel.dataset_strategy=[[1,2]]";
  const std::string by_examples = "parallel.dataset_strategy=[[2,1]]";
  const Job features = GoodJob({by_features}), examples = GoodJob({});
  const auto loaded = [](Job job, const Job& of) {
    job.parallel.kept_strategy =
        *ParseStrategyFile(PrintStrategyFile(KeptOf(of, *StrategyOf(of, 2))), "s.json");
    return job;
  };
  for (const Job& of : {features, examples}) {
    EXPECT_EQ(*StrategyOf(loaded(examples, of), 2), *StrategyOf(of, 2));
  }
  EXPECT_EQ(*StrategyOf(loaded(features, features), 2), *StrategyOf(features, 2));
  EXPECT_THAT(
      Refused(loaded(features, examples), 2),
      testing::AllOf(HasSubstr("parallel.dataset_strategy: [1, 2] cuts the data by features"),
                     HasSubstr("s.json"), HasSubstr("examples 2")));
  EXPECT_THAT(Refused(loaded(GoodJob({by_examples}), features), 2),
              testing::AllOf(HasSubstr("cuts the data by examples"), HasSubstr("columns 2")));
  EXPECT_THAT(Refused(loaded(GoodJob({"parallel.dataset_strategy=[[4,1]]"}), examples), 2),
              HasSubstr("4 parts, and there are 2 workers"));
}

// Nothing is set in between: act follows the columns of one, and two takes them as they are.
TEST(StrategyOfJobTest, WhatGoesIntoABlockAndComesOutLiesAsItSays) {
  const auto block = [](const std::string& more) {
    return R"(parallel.blocks=[{"from": "one", "to": "two", "in_strategy": [1, 1], )" + more + "}]";
  };
  for (const char* mode : {"hybrid_parallel", "semi_auto_parallel", "auto_parallel"}) {
    for (const int level : {0, 1, 2}) {
      SCOPED_TRACE(mode + std::to_string(level));
      const std::string levels = R"("level": )" + std::to_string(level);
      const Strategy found = Found({std::string("parallel.parallel_mode=") + mode,
                                    block(R"("out_strategy": [2, 2], )" + levels)},
                                   4);
      EXPECT_EQ(found.layers[1].examples, 1u);
      EXPECT_EQ(found.layers[1].inputs, 1u) << "all of the rows and columns go in";
      const Layout out = LayoutsOf(LayerCut::kMatrix, found.layers[3], 4).output;
      EXPECT_EQ(out.parts(AxisRole::kRows), 2u);
      EXPECT_EQ(out.parts(AxisRole::kColumns), 2u);
      EXPECT_EQ(found.layers[4], OwnRowsSplit(4));
    }
  }
  const Strategy least = Found({block(R"("out_strategy": [1, 1], "level": 1)")}, 4);
  EXPECT_EQ(least.layers[1], (LayerSplit{1, 1, 4})) << "a quarter of the weights each";
}

TEST(StrategyOfJobTest, SemiAutoIsDataParallelUntilALayerIsPinned) {
  const std::string mode = "parallel.parallel_mode=semi_auto_parallel";
  EXPECT_TRUE(Found({mode}, 4).data_parallel());
  const Strategy pinned = Found({mode, "model.layers.1.shard=[1,4]", "train.batch_size=65536"}, 4);
  EXPECT_EQ(pinned.layers[1], (LayerSplit{1, 1, 4}));
  EXPECT_EQ(pinned.layers[4], OwnRowsSplit(4));
}

TEST(StrategyOfJobTest, LayersThatReadRowsAreCutAlike) {
  const std::string second =
      R"(model.layers.3={"name": "more", "kind": "embedding", "table": "t", )"
      R"("features": ["c", "d"]})";
  const std::string sums = R"(model.layers.4={"name": "drop", "kind": "concat", )"
                           R"("inputs": ["act", "more"]})";
  const Strategy found = Found({second, sums, "model.layers.0.shard=[1,2]"}, 2);
  EXPECT_EQ(found.layers[0], (LayerSplit{1, 1, 2}));
  EXPECT_EQ(found.layers[3], (LayerSplit{1, 1, 2}));
  EXPECT_THAT(
      Refused(GoodJob({second, sums, "model.layers.0.shard=[1,2]", "model.layers.3.shard=[2,1]"}),
              2),
      testing::AllOf(HasSubstr("\"more\" is to be examples 2"), HasSubstr("or none")));
  const Strategy sliced = Found({second, sums, "parallel.dataset_strategy=[[1,2]]"}, 2);
  EXPECT_EQ(sliced.layers[0], (LayerSplit{1, 1, 2}));
  EXPECT_THAT(Refused(GoodJob({second, sums, "parallel.dataset_strategy=[[1,2]]"}), 4),
              testing::AllOf(HasSubstr("parallel.dataset_strategy"), HasSubstr("2 parts"),
                             HasSubstr("4 workers")));
  EXPECT_TRUE(Found({"parallel.dataset_strategy=[[4,1]]"}, 4).data_parallel());
  EXPECT_THAT(Refused(GoodJob({"parallel.dataset_strategy=[[2,1]]"}), 4), HasSubstr("2 parts"));
  EXPECT_THAT(Refused(GoodJob({"parallel.dataset_strategy=[[1,1]]"}), 4), HasSubstr("full_batch"));
}

constexpr const char* kNumbers = R"({
  "data": {"train": ["a.csv"], "columns": [{"name": "y", "type": "label"}, {"name": "c"},
    {"name": "d"}, {"name": "x", "type": "numeric", "repeat": 3}]},
  "model": {"type": "graph", "tables": [{"name": "t", "dim": 4}], "layers": [
    {"name": "rows", "kind": "embedding", "table": "t"}, {"name": "x", "kind": "numeric"},
    {"name": "one", "inputs": ["rows"], "units": 8}, {"name": "two", "inputs": ["x"], "units": 8},
    {"name": "sum", "kind": "sum", "inputs": ["one", "two"]},
    {"name": "out", "inputs": ["sum"], "units": 1}]},
  "parallel": {"parallel_mode": "hybrid_parallel", "dense_exchange": "allreduce",
               "dataset_strategy": [[1, 2], [1, 2]]}
})";

// A dense layer that reads cut columns has as many parts of its inputs, unless its shard is given.
TEST(StrategyOfJobTest, CutNumericColumnsAreSummandsOfDenseLayers) {
  const LayerSplit columns = {1, 1, 2}, inputs = {1, 2, 1}, own = OwnRowsSplit(2);
  for (const char* mode : {"hybrid_parallel", "semi_auto_parallel", "auto_parallel"}) {
    SCOPED_TRACE(mode);
    const Job job = GoodJob({std::string("parallel.parallel_mode=") + mode}, kNumbers);
    const Strategy found = *StrategyOf(job, 2);
    EXPECT_EQ(found.layers[0], columns);
    EXPECT_EQ(found.layers[1], columns);
    EXPECT_EQ(found.layers[3], inputs);
  }
  const Strategy hybrid = *StrategyOf(GoodJob({}, kNumbers), 2);
  EXPECT_EQ(hybrid.layers[2], own);
  EXPECT_EQ(StrategyOf(GoodJob({"model.layers.3.shard=[1,2]"}, kNumbers), 2)->layers[3], columns);
  const std::string first = "parallel.dataset_strategy=[[1,2],[1,1]]";
  const Strategy whole = *StrategyOf(GoodJob({first}, kNumbers), 2);
  EXPECT_EQ(whole.layers[0], columns);
  EXPECT_EQ(whole.layers[1], own);
  EXPECT_EQ(whole.layers[3], own);
  // The layer's own shard says the same as the tuple.
  EXPECT_EQ(*StrategyOf(GoodJob({first, "model.layers.1.shard=[1,2]"}, kNumbers), 2), hybrid);
}

TEST(StrategyOfJobTest, NumericColumnsAreNotCutAlone) {
  const std::string four = "parallel.dataset_strategy=[[1,4],[1,4]]";
  EXPECT_THAT(Refused(GoodJob({four, "model.layers.0.features=[c]"}, kNumbers), 4),
              HasSubstr("4 parts of the 1 features of \"rows\""));
  EXPECT_THAT(Refused(GoodJob({"parallel.dataset_strategy=[[2,1]]", "model.layers.1.shard=[1,2]"},
                              kNumbers),
                      2),
              testing::AllOf(HasSubstr("\"x\" (columns 2) reads its columns of all examples"),
                             HasSubstr("\"rows\" (examples 2)"), HasSubstr("too")));
  const Job cut = GoodJob({}, kNumbers);
  Job whole = GoodJob({"parallel.dataset_strategy=[[1,2],[1,1]]"}, kNumbers);
  whole.parallel.kept_strategy =
      *ParseStrategyFile(PrintStrategyFile(KeptOf(cut, *StrategyOf(cut, 2))), "s.json");
  EXPECT_THAT(Refused(whole, 2),
              testing::AllOf(HasSubstr("[[1, 2], [1, 1]] cuts the data by examples"),
                             HasSubstr("layer \"x\", which reads numeric columns")));
  whole.parallel.dataset_slices.clear();
  EXPECT_EQ(*StrategyOf(whole, 2), *StrategyOf(cut, 2));
  whole.parallel.kept_strategy->strategy.layers[0] = OwnRowsSplit(2);
  EXPECT_THAT(Refused(whole, 2), HasSubstr("cut the sparse features too"));
}

// The form of MindSpore's Mul().shard(((2, 1), (2, 1))), for two layers that are added.
TEST(StrategyOfJobTest, ATupleForEachInputOfAnElementwiseLayer) {
  const auto shard = [](const std::string& tuples) {
    return GoodJob({"parallel.dataset_strategy=data_parallel", "model.layers.4.shard=" + tuples},
                   kNumbers);
  };
  EXPECT_EQ(StrategyOf(shard("[[2,1],[2,1]]"), 4)->layers[4], (LayerSplit{2, 1, 1}));
  EXPECT_EQ(StrategyOf(shard("[[1,4],[1,4]]"), 4)->layers[4], (LayerSplit{1, 1, 4}));
  EXPECT_EQ(StrategyOf(shard("[[2,2],[2,2]]"), 4)->layers[4], (LayerSplit{2, 1, 2}));
  EXPECT_EQ(*StrategyOf(shard("[[2,2],[2,2]]"), 4), *StrategyOf(shard("[2,2]"), 4));
  for (const char* tuples : {"[[2,1],[1,2]]", "[[2,1],[2,1],[2,1]]"}) {
    EXPECT_FALSE(ParseJob(kNumbers, "job.json",
                          {"parallel.dataset_strategy=data_parallel",
                           std::string("model.layers.4.shard=") + tuples})
                     .ok());
  }
}

TEST(StrategyOfJobTest, FilesAreReadWithTheJobAndWrittenWhenItStarts) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("jobs").ok());
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/a.csv", std::string("1,2,3,4,5\n")).ok());
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/job.json", std::string(kTower)).ok());
  const std::string save = "parallel.strategy_ckpt_save_file=jobs/kept.json";
  const auto job = LoadJob(*files, "jobs/job.json", {save, "model.layers.1.shard=[1,4]"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  const Strategy strategy = *StrategyOf(*job, 4);
  ASSERT_TRUE(SaveStrategy(*files, *job, strategy).ok());
  const std::string load = "parallel.strategy_ckpt_load_file=kept.json";
  const auto loads = LoadJob(*files, "jobs/job.json", {load});
  ASSERT_TRUE(loads.ok()) << loads.status().message();
  EXPECT_EQ(*StrategyOf(*loads, 4), strategy);
  const auto missing = LoadJob(*files, "jobs/job.json", {load + "x"});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("parallel.strategy_ckpt_load_file"));

  const std::string constants =
      R"({"results": [{"case": "wire", "figure": "byte", "value": 0.1},)"
      R"({"case": "products_1x1_batch1", "figure": "rate", "value": 50}]})";
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/c.json", constants).ok());
  const auto measured = LoadJob(*files, "jobs/job.json", {"parallel.constants=c.json"});
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_EQ(measured->parallel.rates.flops_per_second, 50e9);
  EXPECT_EQ(measured->parallel.rates.link_bytes_per_second, 1e10);
  EXPECT_EQ(JobDigest(*measured), JobDigest(*LoadJob(*files, "jobs/job.json", {})));
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/c.json", std::string("{}")).ok());
  EXPECT_FALSE(LoadJob(*files, "jobs/job.json", {"parallel.constants=c.json"}).ok());
}

// MindSpore's own example is "./".
TEST(StrategyOfJobTest, AFolderMeansTheFileOfTheUsualNameInIt) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("jobs/kept").ok());
  ASSERT_TRUE(files->MakeDirectories("jobs/blocked/strategy.json").ok());
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/a.csv", std::string("1,2,3,4,5\n")).ok());
  ASSERT_TRUE(WriteFileAtomically(*files, "jobs/job.json", std::string(kTower)).ok());
  const auto load = [&files](const std::string& setting, const std::string& path) {
    return LoadJob(*files, "jobs/job.json", {"parallel.strategy_ckpt_" + setting + "=" + path});
  };
  const auto saved = [&](const std::string& path) {
    const Result<Job> job = load("save_file", path);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return SaveStrategy(*files, *job, *StrategyOf(*job, 4));
  };
  for (const std::string path : {"jobs/", "jobs/.", "jobs/kept", "jobs/kept/../"}) {
    const std::string file = JoinPath(path, "strategy.json");
    ASSERT_FALSE(files->Exists(file)) << path;
    const Status status = saved(path);
    ASSERT_TRUE(status.ok()) << path << ": " << status.message();
    ASSERT_TRUE(files->Exists(file)) << path;
    const Result<Job> again = load("load_file", path);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->parallel.kept_strategy->path, file);
    ASSERT_TRUE(files->RemoveAll(file).ok());
  }
  // A path that is loaded is sought beside the job file first.
  ASSERT_TRUE(saved("jobs/kept").ok());
  EXPECT_EQ(load("load_file", "kept/")->parallel.kept_strategy->path, "jobs/kept/strategy.json");
  EXPECT_THAT(load("load_file", "./").status().message(), HasSubstr("./strategy.json"));
  const std::pair<std::string, std::string> mistakes[] = {
      {"nowhere/", "there is no folder \"nowhere\""},
      {"jobs/blocked/", "is a folder; name another"}};
  for (const auto& [path, needle] : mistakes) {
    const Status refused = saved(path);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << path;
    EXPECT_THAT(refused.message(),
                testing::AllOf(HasSubstr("strategy_ckpt_save_file"), HasSubstr(needle)));
  }
}

TEST(StrategyOfJobTest, FilesThatAreNoStrategyNameTheirLine) {
  const std::string head = "{\"workers\": 2, \"graph\": \"00000000000000aa\",\n\"layers\": [";
  const struct {
    std::string text, needle;
  } mistakes[] = {
      {"[]", "it is no object"},
      {"{\"workers\": 0}", "s.json:1: workers: 0 is not a whole number from 1 to 4096"},
      {"{\"workers\": 2, \"graph\": \"xyz\"}", "\"xyz\" is not the 16 digits"},
      {head + "{\"name\": \"a\", \"kind\": \"dense\", \"examples\": 1, \"inputs\": 1}]}",
       "s.json:2: layers.0.columns: it is missing"},
      {head + "{\"nam\": \"a\"}]}", "s.json:2: layers.0.nam: there is no such key"}};
  for (const auto& mistake : mistakes) {
    const auto kept = ParseStrategyFile(mistake.text, "s.json");
    ASSERT_FALSE(kept.ok());
    EXPECT_EQ(kept.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(kept.status().message(), HasSubstr(mistake.needle));
  }
}

TEST(StrategyOfJobTest, MistakesAreAnsweredWithPlaceValueAndMend) {
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"model.layers.1.shard=[1,8]"}, {"model.layers.1.shard", "[1, 8]", "8 parts", "4 workers"}},
      {{"model.layers.1.shard=[1,3]"}, {"model.layers.1.shard", "3 parts", "do not divide"}},
      {{"model.layers.5.shard=[1,2]"},
       {"2 parts of the 1 columns of out.weight [6, 1]", "at most 1"}},
      {{"model.layers.0.shard=[1,4]"}, {"4 parts of the 3 features", "at most 3"}},
      {{"model.layers.0.shard=[2,2]"}, {"either its examples or its features"}},
      {{"parallel.blocks=[{\"layers\":[\"one\"],\"out_strategy\":[1,3]}]"},
       {"parallel.blocks.0.out_strategy", "[1, 3]", "\"one\""}},
      {{"parallel.blocks=[{\"from\":\"two\",\"to\":\"one\",\"out_strategy\":[1,3]}]"},
       {"parallel.blocks.0", "no way leads from \"two\" to \"one\""}},
      {{"parallel.worker_memory_limit=1KiB"}, {"worker_memory_limit", "1.00 KiB", "raise it"}},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(mistake.overrides[0]);
    const std::string message = Refused(GoodJob(mistake.overrides), 4);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

TEST(StrategyOfJobTest, MistakesThatNeedNoWorkersAreAnsweredWhenTheJobIsRead) {
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"model.layers.1.shard=[1,2,3]"}, {"model.layers.1.shard", "[1, 2, 3]", "give two"}},
      {{"model.layers.1.shard=[0,2]"}, {"model.layers.1.shard", "[0, 2]", "from 1 to 4096"}},
      {{"model.layers.1.shard=[[1,2],[4,1]]"}, {"2 parts", "4", "make them equal"}},
      {{"model.layers.4.shard=[1,2]"}, {"\"drop\"", "dropout cannot be cut", "leave shard out"}},
      {{"parallel.parallel_mode=data_parallel", "model.layers.1.shard=[1,2]"},
       {"model.layers.1.shard", "data_parallel", "hybrid_parallel"}},
      {{"parallel.dense_exchange=servers", "model.layers.1.shard=[1,2]"},
       {"parallel.dense_exchange", "use allreduce"}},
      {{"parallel.dataset_strategy=[[1,2],[1,2]]"},
       {"parallel.dataset_strategy", "numeric columns"}},
      {{"parallel.dataset_strategy=full_batch", "model.layers.1.shard=[1,2]"},
       {"parallel.dataset_strategy", "use data_parallel"}},
      {{"parallel.blocks=[{\"layers\":[\"onne\"],\"shard\":[1,2]}]"},
       {"parallel.blocks.0.layers", "\"onne\"", "did you mean \"one\"?"}},
      {{"parallel.blocks=[{\"layers\":[\"one\"]}]"}, {"parallel.blocks.0", "says nothing"}},
      {{"parallel={\"search_mode\":\"dynamic_programming\",\"auto_parallel_search_mode\":"
        "\"sharding_propagation\"}"},
       {"auto_parallel_search_mode", "one setting"}},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(mistake.overrides[0]);
    const Result<Job> job = ParseJob(kTower, "job.json", mistake.overrides);
    ASSERT_FALSE(job.ok());
    for (const std::string& needle : mistake.needles) {
      EXPECT_THAT(job.status().message(), HasSubstr(needle));
    }
  }
}

}  // namespace
}  // namespace hdps
