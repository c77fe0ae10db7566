// Defines the planted model that decides the labels of a synthetic log.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hdps {

// Each family needs one kind of model: simpler kinds cannot express it.
enum class TeacherFamily : uint8_t {
  kLinear,    // A weight for each category and each number.
  kPairwise,  // Linear, and dot products of all pairs of latent vectors (FM).
  // Linear, and products of two categories, and of two categories and a number (DCN).
  kCrosses,
  // Dot products of all pairs of latent vectors and a vector of the numbers (DLRM).
  kDot,
  kWideDeep,  // Linear, and a small network on latent vectors and numbers.
  // Linear, and a small network on the sum of the elementwise products of all pairs (NFM).
  kPooled,
  // Linear, and dot products of all pairs, each with a weight for its fields (FiBiNET).
  kFieldPairs,
  // Linear, and the sum of the elementwise products of all triples (xDeepFM).
  kTriples,
};

// Maps names to families: "linear", "pairwise", "crosses", ..., as TeacherFamilies() lists them.
std::optional<TeacherFamily> TeacherFamilyOf(std::string_view name);
std::vector<std::string> TeacherFamilies();

// The features of a row.
struct TeacherInput {
  std::span<const uint64_t> values;  // Value of each categorical field, [fields].
  std::span<const double> numbers;   // [numbers], with mean about 0 and variance about 1.
};

// A planted model. Each weight is a function of the seed and of what it belongs to; none is stored,
// so a vocabulary may have any size.
class Teacher {
 public:
  Teacher(TeacherFamily family, uint64_t seed) : family_(family), seed_(seed) {}

  // Return the two parts of the logit before scaling; 0 if the family does not have the part.
  double Linear(const TeacherInput& input) const;
  double Interaction(const TeacherInput& input) const;
  // Return the share of each part in the logit's standard deviation; their squares sum to 1.
  double linear_scale() const;
  double interaction_scale() const;

 private:
  static constexpr size_t kLatent = 4;
  static constexpr size_t kHidden = 8;

  // Return a normal number: component `c` of the vector of a field's value, or of number j.
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
