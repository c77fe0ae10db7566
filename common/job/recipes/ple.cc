// PLE: experts for each task beside shared ones, in several levels.
#include <algorithm>

#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

namespace {

// The inputs of a level, or its outputs: one for each task, and a shared one.
struct Level {
  std::vector<std::string> tasks;
  std::string shared;
};

class Extraction {
 public:
  Extraction(GraphBuilder& g, const std::string& name)
      : g_(g),
        name_(name),
        own_(g.Own<uint32_t>("task_experts")),
        shared_(g.Own<uint32_t>("experts")),
        units_(g.Own<uint32_t>("expert_units")) {}

  // `last`: nothing above reads the shared output.
  Level Over(const Level& below, bool last) {
    const auto count = static_cast<uint32_t>(below.tasks.size());
    const std::string shared = Experts("shared", below.shared, shared_);
    std::vector<std::string> own;
    for (uint32_t t = 0; t < count; ++t) {
      own.push_back(Experts(Task(t), below.tasks[t], own_));
    }
    Level above;
    for (uint32_t t = 0; t < count; ++t) {
      above.tasks.push_back(Mix(Task(t), {own[t], shared}, below.tasks[t], own_ + shared_));
    }
    if (!last) {
      own.push_back(shared);
      above.shared = Mix("shared", own, below.shared, count * own_ + shared_);
    }
    return above;
  }

 private:
  static std::string Task(uint32_t t) { return "task" + std::to_string(t + 1); }
  std::string Experts(const std::string& whose, const std::string& input, uint32_t count) {
    return g_.Dense(name_ + whose + "_experts", input, count * units_, Activation::kRelu);
  }
  std::string Mix(const std::string& whose, const std::vector<std::string>& experts,
                  const std::string& input, uint32_t count) {
    const std::string all = g_.Concat(name_ + whose + "_all", experts);
    const std::string gate = g_.Dense(name_ + whose + "_gate", input, count, Activation::kNone);
    return g_.Add(GraphBuilder::Layer(name_ + whose + "_mixture", "mixture", {all, gate}));
  }

  GraphBuilder& g_;
  const std::string name_;
  const uint32_t own_, shared_, units_;
};

void Build(GraphBuilder& g) {
  const std::string input = g.WithNumeric(g.Embedding());
  Level level;
  level.tasks.assign(std::max<size_t>(1, g.model().tasks.size()), input);
  level.shared = input;
  const auto levels = g.Own<uint32_t>("levels");
  for (uint32_t i = 1; i <= levels; ++i) {
    level = Extraction(g, "level" + std::to_string(i) + "_").Over(level, i == levels);
  }
  std::vector<std::string> logits;
  for (size_t t = 0; t < level.tasks.size(); ++t) {
    const std::string task = "task" + std::to_string(t + 1);
    const std::string tower = g.Hidden(task + "_deep", level.tasks[t], g.recipe().hidden);
    logits.push_back(g.Dense(task + "_logit", tower, 1, Activation::kNone));
  }
  if (logits.size() > 1) g.Concat("logits", logits);
}

}  // namespace

RecipeRecord PleRecipe() {
  RecipeRecord record;
  record.word = "ple";
  record.gives =
      "`experts` hidden layers that all tasks share and `task_experts` of each task; a task adds "
      "up "
      "those and its own by the softmax of its gate, in `levels` levels, and has an MLP (`hidden`) "
      "above";
  record.paper = "Tang et al. 2020";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = {{"experts", 4u, 1, 256, {}, "Experts that all tasks share."},
                     {"task_experts", 2u, 1, 256, {}, "Experts of each task alone."},
                     {"expert_units", 32u, 1, 4096, {}, "Width of one expert."},
                     {"levels", 1u, 1, 8, {}, "Levels of experts and gates (1: CGC)."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
