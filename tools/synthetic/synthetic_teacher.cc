// Implements the kinds of planted models.
#include "tools/synthetic/synthetic_teacher.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr std::pair<std::string_view, TeacherFamily> kFamilies[] = {
    {"linear", TeacherFamily::kLinear},          {"pairwise", TeacherFamily::kPairwise},
    {"crosses", TeacherFamily::kCrosses},        {"dot", TeacherFamily::kDot},
    {"wide_deep", TeacherFamily::kWideDeep},     {"pooled", TeacherFamily::kPooled},
    {"field_pairs", TeacherFamily::kFieldPairs}, {"triples", TeacherFamily::kTriples}};

// Component 0 is the linear weight; the rest are latent.
constexpr size_t kLinearComponent = 0;
constexpr size_t kFirstLatent = 1;
constexpr uint64_t kNumberField = uint64_t{1} << 32;
constexpr uint64_t kHiddenField = uint64_t{1} << 33;
constexpr uint64_t kPairField = uint64_t{1} << 34;

double NormalAt(uint64_t seed, uint64_t owner, uint64_t value, uint64_t component) {
  const uint64_t stream = RandomAt(RandomAt(seed, owner), value);
  const double u = 1 - UnitDouble(RandomAt(stream, 2 * component));
  const double v = UnitDouble(RandomAt(stream, 2 * component + 1));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

std::optional<TeacherFamily> TeacherFamilyOf(std::string_view name) {
  for (const auto& [family_name, family] : kFamilies) {
    if (family_name == name) return family;
  }
  return std::nullopt;
}

std::vector<std::string> TeacherFamilies() {
  std::vector<std::string> names;
  for (const auto& [name, family] : kFamilies) names.emplace_back(name);
  return names;
}

double Teacher::linear_scale() const {
  switch (family_) {
    case TeacherFamily::kLinear:
      return 1;
    case TeacherFamily::kDot:
      return 0;
    case TeacherFamily::kPairwise:
    case TeacherFamily::kCrosses:
    case TeacherFamily::kWideDeep:
    case TeacherFamily::kPooled:
    case TeacherFamily::kFieldPairs:
    case TeacherFamily::kTriples:
      return std::sqrt(0.5);
  }
  return 0;
}

double Teacher::interaction_scale() const { return std::sqrt(1 - linear_scale() * linear_scale()); }

double Teacher::OfValue(size_t field, uint64_t value, size_t c) const {
  return NormalAt(seed_, field, value, c);
}

double Teacher::OfNumber(size_t number, size_t c) const {
  return NormalAt(seed_, kNumberField + number, 0, c);
}

double Teacher::Linear(const TeacherInput& input) const {
  double sum = 0;
  if (family_ == TeacherFamily::kDot) return sum;
  for (size_t f = 0; f < input.values.size(); ++f) {
    sum += OfValue(f, input.values[f], kLinearComponent);
  }
  for (size_t j = 0; j < input.numbers.size(); ++j) {
    sum += OfNumber(j, kLinearComponent) * input.numbers[j];
  }
  return sum;
}

double Teacher::Interaction(const TeacherInput& input) const {
  switch (family_) {
    case TeacherFamily::kLinear:
      return 0;
    case TeacherFamily::kPairwise:
    case TeacherFamily::kDot:
      return Dots(input);
    case TeacherFamily::kCrosses:
      return Crosses(input);
    case TeacherFamily::kWideDeep:
      return Network(input);
    case TeacherFamily::kPooled:
      return Pooled(input);
    case TeacherFamily::kFieldPairs:
      return FieldPairs(input);
    case TeacherFamily::kTriples:
      return Triples(input);
  }
  return 0;
}

// Uses sum over pairs i < j of <v_i, v_j> = (|sum of v|^2 - sum of |v|^2) / 2.
double Teacher::Dots(const TeacherInput& input) const {
  double total = 0;
  for (size_t c = 0; c < kLatent; ++c) {
    double sum = 0, squares = 0;
    const auto add = [&](double component) {
      sum += component;
      squares += component * component;
    };
    for (size_t f = 0; f < input.values.size(); ++f) {
      add(OfValue(f, input.values[f], kFirstLatent + c));
    }
    if (family_ == TeacherFamily::kDot && !input.numbers.empty()) {
      double dense = 0;
      for (size_t j = 0; j < input.numbers.size(); ++j) {
        dense += OfNumber(j, kFirstLatent + c) * input.numbers[j];
      }
      add(std::tanh(dense / std::sqrt(static_cast<double>(input.numbers.size()))));
    }
    total += (sum * sum - squares) / 2;
  }
  return total;
}

double Teacher::Crosses(const TeacherInput& input) const {
  double total = 0;
  for (size_t f = 0; f + 1 < input.values.size(); ++f) {
    const double pair = OfValue(f, input.values[f], kFirstLatent) *
                        OfValue(f + 1, input.values[f + 1], kFirstLatent);
    total += pair;
    if (!input.numbers.empty()) total += pair * input.numbers[f % input.numbers.size()];
  }
  return total;
}

double Teacher::Network(const TeacherInput& input) const {
  constexpr size_t kUsed = 2;  // Latent components that the network sees of each field.
  const auto width = static_cast<double>(kUsed * input.values.size() + input.numbers.size());
  std::array<double, kHidden> hidden = {};
  uint64_t in = 0;
  const auto show = [&](double value) {
    for (size_t h = 0; h < kHidden; ++h)
      hidden[h] += NormalAt(seed_, kHiddenField + h, 0, in) * value;
    ++in;
  };
  for (size_t f = 0; f < input.values.size(); ++f) {
    for (size_t c = 0; c < kUsed; ++c) show(OfValue(f, input.values[f], kFirstLatent + c));
  }
  for (double number : input.numbers) show(number);
  double out = 0;
  for (size_t h = 0; h < kHidden; ++h) {
    const double bias = NormalAt(seed_, kHiddenField + h, 1, 0);
    const double weight = NormalAt(seed_, kHiddenField + h, 1, 1);
    out += weight * std::tanh(1.5 * hidden[h] / std::sqrt(width) + bias);
  }
  return out;
}

double Teacher::Pooled(const TeacherInput& input) const {
  const auto fields = static_cast<double>(input.values.size());
  const double pairs = std::max(1.0, fields * (fields - 1) / 2);
  std::array<double, kLatent> pooled = {};
  for (size_t c = 0; c < kLatent; ++c) {
    double sum = 0, squares = 0;
    for (size_t f = 0; f < input.values.size(); ++f) {
      const double v = OfValue(f, input.values[f], kFirstLatent + c);
      sum += v;
      squares += v * v;
    }
    pooled[c] = (sum * sum - squares) / 2 / std::sqrt(pairs);
  }
  double out = 0;
  for (size_t h = 0; h < kHidden; ++h) {
    double hidden = NormalAt(seed_, kHiddenField + h, 1, 0);
    for (size_t c = 0; c < kLatent; ++c) {
      hidden += NormalAt(seed_, kHiddenField + h, 0, c) * pooled[c] / std::sqrt(double{kLatent});
    }
    out += NormalAt(seed_, kHiddenField + h, 1, 1) * std::tanh(hidden);
  }
  return out;
}

double Teacher::FieldPairs(const TeacherInput& input) const {
  double total = 0;
  for (size_t f = 0; f < input.values.size(); ++f) {
    for (size_t g = f + 1; g < input.values.size(); ++g) {
      double dot = 0;
      for (size_t c = 0; c < kLatent; ++c) {
        dot += OfValue(f, input.values[f], kFirstLatent + c) *
               OfValue(g, input.values[g], kFirstLatent + c);
      }
      total += NormalAt(seed_, kPairField + f, g, 0) * dot;
    }
  }
  return total;
}

// Computes the elementary symmetric polynomial of degree three of each component, field by field.
double Teacher::Triples(const TeacherInput& input) const {
  double total = 0;
  for (size_t c = 0; c < kLatent; ++c) {
    double ones = 0, pairs = 0, triples = 0;
    for (size_t f = 0; f < input.values.size(); ++f) {
      const double v = OfValue(f, input.values[f], kFirstLatent + c);
      triples += pairs * v;
      pairs += ones * v;
      ones += v;
    }
    total += triples;
  }
  return total;
}

}  // namespace hdps
