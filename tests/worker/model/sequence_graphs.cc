// Makes small graphs that end in one logit.
#include "tests/worker/model/sequence_graphs.h"

#include <utility>

#include "common/job/spec/layer_spec.h"
#include "tests/worker/model/model_fixture.h"

namespace hdps {
namespace {

LayerSpec Rows(const std::string& name, std::vector<std::string> features,
               Pooling pooling = Pooling::kSum, Combine combine = Combine::kConcat) {
  LayerSpec layer = TestLayer(name, "embedding", {});
  layer.table = "deep";
  layer.features = std::move(features);
  layer.pooling = pooling;
  layer.combine = combine;
  return layer;
}

LayerSpec Units(const std::string& name, const std::string& kind, std::vector<std::string> inputs,
                uint32_t units, Activation activation = Activation::kNone) {
  LayerSpec layer = TestLayer(name, kind, std::move(inputs));
  layer.units = units;
  layer.activation = activation;
  return layer;
}

// Reads the one weight per row of the table "wide", which every test graph must use.
LayerSpec Wide() {
  LayerSpec layer = TestLayer("w", "embedding", {});
  layer.table = "wide";
  layer.combine = Combine::kSum;
  return layer;
}

Job Max() {
  return TestGraph({Rows("e", {}, Pooling::kMax), Rows("s", {}, Pooling::kMax, Combine::kSum),
                    TestLayer("all", "concat", {"e", "s"}),
                    Units("h", "dense", {"all"}, 7, Activation::kTanh),
                    Units("z", "dense", {"h"}, 1), Wide(), TestLayer("logit", "sum", {"z", "w"})});
}

LayerSpec Sequence(uint32_t length) {
  LayerSpec sequence = TestLayer("seq", "sequence", {});
  sequence.table = "deep";
  sequence.features = {"C0"};
  sequence.numbers["length"] = length;
  return sequence;
}

// Shorter than some sequences.
Job Din(const std::string& scores) {
  LayerSpec din = Units("din", "din", {"seq", "target"}, 5, Activation::kSigmoid);
  din.words["scores"] = scores;
  return TestGraph({Sequence(2), Rows("target", {"C1"}), din,
                    TestLayer("all", "concat", {"din", "target"}),
                    Units("h", "dense", {"all"}, 7, Activation::kTanh),
                    Units("z", "dense", {"h"}, 1), Wide(), TestLayer("logit", "sum", {"z", "w"})});
}

// Ends in what is made of the last vector of the sequence `top`, of which a dense layer reads all.
Job EndsIn(std::vector<LayerSpec> layers, const std::string& top) {
  layers.insert(layers.end(),
                {TestLayer("last", "last_vector", {top}), TestLayer("all", "concat", {"last", top}),
                 Units("h", "dense", {"all"}, 7, Activation::kTanh), Units("z", "dense", {"h"}, 1),
                 Wide(), TestLayer("logit", "sum", {"z", "w"})});
  return TestGraph(layers);
}

// Two blocks on a sequence that is shorter than some histories, with or without a target behind it.
Job Transformer(const std::string& norm, const std::string& sees, bool target) {
  std::vector<LayerSpec> layers = {Sequence(2), Rows("target", {"C1"})};
  layers.push_back(TestLayer("at", "positions", {"seq"}));
  if (target) layers.back().inputs.push_back("target");
  for (const char* name : {"a", "b"}) {
    LayerSpec block = Units(name, "transformer", {layers.back().name}, 5, Activation::kTanh);
    block.words["norm"] = norm;
    block.words["sees"] = sees;
    layers.push_back(block);
  }
  if (!target) layers.erase(layers.begin() + 1);
  return EndsIn(layers, "b");
}

// One unit above another; the second with the target, or not.
Job Gru(bool target) {
  LayerSpec second = Units("b", "gru", {"a"}, 5);
  if (target) second.inputs.push_back("target");
  std::vector<LayerSpec> layers = {Sequence(2), Units("a", "gru", {"seq"}, 3)};
  if (target) layers.push_back(Rows("target", {"C1"}));
  layers.push_back(second);
  return EndsIn(layers, "b");
}

// Two layers in sequence; the rows of the second have gaps behind them if they are wide.
Job Attention(uint32_t units) {
  LayerSpec first = Units("a", "attention", {"e"}, units),
            second = Units("b", "attention", {"a"}, 6);
  second.numbers["heads"] = 3;
  return TestGraph({Rows("e", {}), first, second, Units("z", "dense", {"b"}, 1), Wide(),
                    TestLayer("logit", "sum", {"z", "w"})});
}

Job Mixture() {
  return TestGraph(
      {Rows("e", {}), TestLayer("n", "numeric", {}), TestLayer("all", "concat", {"e", "n"}),
       Units("experts", "dense", {"all"}, 15, Activation::kTanh),
       Units("gate", "dense", {"all"}, 3), TestLayer("mix", "mixture", {"experts", "gate"}),
       Units("z", "dense", {"mix"}, 1), Wide(), TestLayer("logit", "sum", {"z", "w"})});
}

Job Cosine() {
  LayerSpec user = TestLayer("user", "normalize", {"u"}),
            item = TestLayer("item", "normalize", {"i"});
  user.numbers["temperature"] = 0.5;
  return TestGraph({Rows("eu", {"C0", "C1"}), Rows("ei", {"C2", "C3"}),
                    Units("u", "dense", {"eu"}, 6, Activation::kTanh),
                    Units("i", "dense", {"ei"}, 6, Activation::kTanh), user, item,
                    TestLayer("cosine", "inner", {"user", "item"}),
                    TestLayer("both", "towers", {"user", "item"}), Units("z", "dense", {"both"}, 1),
                    Wide(), TestLayer("logit", "sum", {"z", "cosine", "w"})});
}

Job Joint() {
  return TestGraph({Rows("e", {}), TestLayer("n", "numeric", {}),
                    TestLayer("all", "concat", {"e", "n"}), Units("click", "dense", {"all"}, 1),
                    Units("buy", "dense", {"n"}, 1), Wide(), TestLayer("b", "sum", {"buy", "w"}),
                    TestLayer("logit", "joint", {"click", "b"})});
}

}  // namespace

std::vector<NamedJob> SequenceGraphs() {
  return {{"max", Max()},
          {"din_plain", Din("plain")},
          {"din_softmax", Din("softmax"), true},
          {"attention", Attention(4)},
          {"attention_wide", Attention(64)},
          {"mixture", Mixture()},
          {"cosine", Cosine()},
          {"joint", Joint()},
          {"gru", Gru(false), true},
          {"augru", Gru(true), true},
          {"transformer", Transformer("after", "all", true)},
          {"transformer_before", Transformer("before", "earlier", false), true},
          {"transformer_earlier", Transformer("after", "earlier", false), true}};
}

}  // namespace hdps
