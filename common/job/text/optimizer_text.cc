// The settings of an optimizer.
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

constexpr auto WordsOf(OptimizerKind) {
  using enum OptimizerKind;
  return EnumWords(kSgd, "sgd", kMomentum, "momentum", kAdagrad, "adagrad", kRowwiseAdagrad,
                   "rowwise_adagrad", kAdam, "adam", kLazyAdam, "lazy_adam", kAdamW, "adamw", kFtrl,
                   "ftrl", kLamb, "lamb");
}

namespace {

// Another kind than that of the place's default takes what is not given from its own defaults.
void ResetToKind(const JsonValue& object, OptimizerSpec* spec) {
  const JsonValue* value = object.Find("kind");
  if (value == nullptr) return;
  OptimizerKind kind = spec->kind;
  ReadValue(*value, &kind);
  if (kind == spec->kind) return;
  *spec = OptimizerSpec();
  spec->kind = kind;
}

}  // namespace

Section OptimizerSection() {
  using enum Note;
  using enum OptimizerKind;
  constexpr auto kKind = &OptimizerSpec::kind;
  const auto adams = Where(kKind, {kAdam, kLazyAdam, kAdamW, kLamb});
  SettingTable<OptimizerSpec> optimizer("optimizer", "An optimizer");
  optimizer.Add("kind", kKind, "lamb only for dense weights.", kNoDefault);
  optimizer.Add("learning_rate", &OptimizerSpec::learning_rate, "", Range{0, 1e6}, kNoDefault);
  optimizer.Add("momentum", &OptimizerSpec::momentum, "", Range{0, 0.999999},
                Where(kKind, {kMomentum}));
  optimizer.Add("beta1", &OptimizerSpec::beta1, "", Range{0, 0.999999}, adams);
  optimizer.Add("beta2", &OptimizerSpec::beta2, "", Range{0, 0.999999}, adams);
  optimizer.Add("epsilon", &OptimizerSpec::epsilon, "", Range{1e-30, 1e6},
                Where(kKind, {kAdagrad, kRowwiseAdagrad, kAdam, kLazyAdam, kAdamW, kLamb}));
  optimizer.Add("weight_decay", &OptimizerSpec::weight_decay, "Decoupled.", Range{0, 1e6},
                Where(kKind, {kAdamW, kLamb}));
  optimizer.Add("l1", &OptimizerSpec::l1, "", Range{0, 1e6}, Where(kKind, {kFtrl}));
  optimizer.Add("l2", &OptimizerSpec::l2, "", Range{0, 1e6}, Where(kKind, {kFtrl}));
  optimizer.Add("initial_accumulator", &OptimizerSpec::initial_accumulator, "", Range{0, 1e6},
                Where(kKind, {kAdagrad, kRowwiseAdagrad, kFtrl}));
  optimizer.BeforeReading(ResetToKind);
  return optimizer.Done();
}

}  // namespace hdps
