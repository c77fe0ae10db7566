// Makes small graphs that end in one logit.
#include "tests/worker/model/sequence_graphs.h"

#include <utility>

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

// Shorter than some sequences.
Job Din(const std::string& scores) {
  LayerSpec sequence = TestLayer("seq", "sequence", {});
  sequence.table = "deep";
  sequence.features = {"C0"};
  sequence.numbers["length"] = 2;
  LayerSpec din = Units("din", "din", {"seq", "target"}, 5, Activation::kSigmoid);
  din.words["scores"] = scores;
  return TestGraph({sequence, Rows("target", {"C1"}), din,
                    TestLayer("all", "concat", {"din", "target"}),
                    Units("h", "dense", {"all"}, 7, Activation::kTanh),
                    Units("z", "dense", {"h"}, 1), Wide(), TestLayer("logit", "sum", {"z", "w"})});
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
          {"joint", Joint()}};
}

}  // namespace hdps
