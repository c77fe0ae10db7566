// Implements the sketches of columns.
#include "tools/prepare/sketches.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "common/base/hash.h"

namespace hdps {

void DistinctValues::Add(uint64_t hash) {
  if (level_ > 0 && hash >> (64 - level_) != 0) return;
  uint32_t& count = kept_[hash];
  count += count < std::numeric_limits<uint32_t>::max() ? 1 : 0;
  while (kept_.size() > kept_max_ && level_ < 63) {
    ++level_;
    std::erase_if(kept_, [this](const auto& value) { return value.first >> (64 - level_) != 0; });
  }
}

double DistinctValues::Scaled(size_t kept) const {
  return std::ldexp(static_cast<double>(kept), static_cast<int>(level_));
}

double DistinctValues::AtLeast(uint32_t times) const {
  return Scaled(static_cast<size_t>(
      std::ranges::count_if(kept_, [times](const auto& value) { return value.second >= times; })));
}

std::vector<double> DistinctValues::ByTimes(size_t times_max) const {
  std::vector<size_t> kept(times_max);
  for (const auto& [hash, times] : kept_) ++kept[std::min<size_t>(times, times_max) - 1];
  std::vector<double> values;
  for (const size_t count : kept) values.push_back(Scaled(count));
  return values;
}

double DistinctValues::HalfOfTimes() const {
  std::vector<uint64_t> counts;
  uint64_t all = 0, sum = 0;
  for (const auto& [hash, times] : kept_) {
    counts.push_back(times);
    all += times;
  }
  std::ranges::sort(counts, std::greater<>());
  size_t first = 0;
  while (first < counts.size() && 2 * sum < all) sum += counts[first++];
  return Scaled(std::max<size_t>(first, 1));
}

void FrequentValues::Add(uint64_t hash, std::string_view text) {
  const size_t before = counts_.size();
  counts_.Add({&hash, 1});
  if (counts_.size() > before) texts_.emplace(hash, text.substr(0, kTextBytesMax));
  if (counts_.size() >= before) return;
  std::erase_if(texts_, [this](const auto& entry) { return counts_.CountOf(entry.first) == 0; });
}

std::vector<FrequentValues::Value> FrequentValues::Top(size_t count) const {
  std::vector<Value> values;
  for (const FrequentKeys::Counted& counted : counts_.All()) {
    values.push_back({texts_.at(counted.key), counted.count});
  }
  std::ranges::sort(values, [](const Value& a, const Value& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  values.resize(std::min(count, values.size()));
  return values;
}

void NumberSample::Add(double number) {
  ++seen_;
  if (numbers_.size() < kNumbersMax) {
    numbers_.push_back(number);
    return;
  }
  const uint64_t place = MixBits(seen_) % seen_;
  if (place < kNumbersMax) numbers_[place] = number;
}

void Moments::Add(double x) {
  min_ = count_ == 0 ? x : std::min(min_, x);
  max_ = count_ == 0 ? x : std::max(max_, x);
  const auto before = static_cast<double>(count_++);
  const auto n = static_cast<double>(count_);
  const double delta = x - mean_, part = delta / n, term = delta * part * before;
  mean_ += part;
  cube_ += term * part * (n - 2) - 3 * part * square_;
  square_ += term;
}

double Moments::deviation() const {
  return count_ < 2 ? 0 : std::sqrt(square_ / static_cast<double>(count_ - 1));
}

double Moments::skewness() const {
  if (square_ <= 0) return 0;
  return std::sqrt(static_cast<double>(count_)) * cube_ / std::pow(square_, 1.5);
}

}  // namespace hdps
