// The law by which the values of a sparse feature come, and what it says about a step's keys.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hdps {

struct Job;

// Value k of `values`, from 0 on, comes with a probability proportional to (k + 1)^-exponent.
struct ValueLaw {
  double values = 1, exponent = 1.05;
};

// Returns the law of this many values of which the `half` most frequent have half of the rows.
ValueLaw LawOfHalf(double values, double half);

// Returns the laws of the sparse features that data.distinct counts, and of the buckets of numbers,
// by the features' names. Empty if the job has no counts.
std::map<std::string, ValueLaw> LawsOf(const Job& job);

// Returns the expected number of distinct values in `draws` draws from `count` values of a law with
// this exponent.
double ExpectedDistinct(double count, double exponent, double draws);
// Returns how many of these are among the `first` most frequent values.
double ExpectedDistinctOfFirst(double first, double count, double exponent, double draws);
// Returns the sum, over the values but the `first` most frequent ones, of the square of the
// probability that a value is among the draws.
double SquaresBehindFirst(double first, const ValueLaw& law, double draws);
// Returns the number of draws until `distinct` values are expected, or infinity if that is nearly
// all of the values.
double DrawsUntil(double count, double exponent, double distinct);

// Returns how many values of each law are among the `count` most frequent ones of all laws
// together, if each law is drawn from as often.
std::vector<double> MostFrequentOf(const std::vector<ValueLaw>& laws, double count);

}  // namespace hdps
