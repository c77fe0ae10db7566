// The model planted in a synthetic log: what decides the labels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hdps {

// Each is what one kind of model can express, and simpler kinds cannot.
enum class TeacherFamily : uint8_t {
  kLinear,    // A weight for each category and each number.
  kPairwise,  // Linear, and the dot products of all pairs of latent vectors (FM).
  kCrosses,   // Linear, and products of two categories, and of two and a number (DCN).
  kDot,       // Dot products of all pairs of latent vectors and one made of the numbers (DLRM).
  kWideDeep,  // Linear, and a small network over latent vectors and numbers.
  kPooled,  // Linear, and a small network over the elementwise products of all pairs, added (NFM).
  kFieldPairs,  // Linear, and the dot products of all pairs, each by a weight of its fields
                // (FiBiNET).
  kTriples,     // Linear, and the elementwise products of all triples, added (xDeepFM).
};

// "linear", "pairwise", "crosses", ...: as in TeacherFamilies().
std::optional<TeacherFamily> TeacherFamilyOf(std::string_view name);
std::vector<std::string> TeacherFamilies();

// What a row shows its teacher.
struct TeacherInput {
  std::span<const uint64_t> values;  // [fields]: the value of each categorical field.
  std::span<const double> numbers;   // [numbers]: about mean 0, variance 1.
};

// Weights are a function of (seed, what they belong to): nothing is stored, so a vocabulary may
// have any size.
class Teacher {
 public:
  Teacher(TeacherFamily family, uint64_t seed) : family_(family), seed_(seed) {}

  // The two parts of the logit before they are brought to scale. A family without one gives 0.
  double Linear(const TeacherInput& input) const;
  double Interaction(const TeacherInput& input) const;
  // Of the logit's standard deviation, before both parts add up; squares sum to 1.
  double linear_scale() const;
  double interaction_scale() const;

 private:
  static constexpr size_t kLatent = 4;
  static constexpr size_t kHidden = 8;

  // Normal numbers: component `c` of the vector of a value of a field, or of number j.
  double OfValue(size_t field, uint64_t value, size_t c) const;
  double OfNumber(size_t number, size_t c) const;
  double Dots(const TeacherInput& input) const;
  double Crosses(const TeacherInput& input) const;
  double Network(const TeacherInput& input) const;
  double Pooled(const TeacherInput& input) const;
  double FieldPairs(const TeacherInput& input) const;
  double Triples(const TeacherInput& input) const;

  TeacherFamily family_;
  uint64_t seed_;
};

}  // namespace hdps
