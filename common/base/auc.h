// How good predicted probabilities are: the area under the ROC curve, and the mean logloss.
#pragma once

#include <span>
#include <string>

namespace hdps {

// The probability that a random positive example scores above a random negative one; a tie counts
// half (Mann and Whitney, 1947). Exact: every pair counts, and the order of the examples does not
// matter. A label above 0.5 is positive. NaN when there is no such pair (only one class, or no
// example) or when any score is NaN, for a NaN has no place among the others.
// scores[n], labels[n]. Costs one sort.
double ExactAuc(std::span<const float> scores, std::span<const float> labels);

// Why ExactAuc gives NaN, in words: "all 5,000 labels are 0". Empty where it gives a number.
std::string WhyNoAuc(std::span<const float> scores, std::span<const float> labels);

// The mean of -log(p of the label that is true), p kept within [1e-7, 1 - 1e-7] so that one certain
// mistake costs 16.1 and not infinity. NaN when there is no example or any score is NaN.
// scores[n], labels[n]; added in the order given.
double MeanLogloss(std::span<const float> scores, std::span<const float> labels);

}  // namespace hdps
