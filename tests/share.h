// Chooses the share of long tests that each change is judged by: docs/records/night.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace hdps {

// Returns whether the environment asks for all of every test, by HDPS_TESTS=all.
inline bool AllTestsAreAsked() {
  const char* const tests = std::getenv("HDPS_TESTS");
  return tests != nullptr && std::string_view(tests) == "all";
}

inline constexpr uint64_t kThirds = 3;

// Returns the third of a long test that runs today, 0 .. 2, or that HDPS_THIRD names; as
// tests/end_to_end/harness.py chooses it.
inline uint64_t ChosenThird() {
  const char* const asked = std::getenv("HDPS_THIRD");
  if (asked != nullptr) return std::strtoull(asked, nullptr, 10) % kThirds;
  const auto days = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return static_cast<uint64_t>(days.time_since_epoch().count()) % kThirds;
}

// Returns every third one of `cases`, others each day, and says what it leaves out; all of them if
// all tests are asked for.
template <typename Case>
std::vector<Case> ThirdOf(const std::vector<Case>& cases, const char* what) {
  if (AllTestsAreAsked()) return cases;
  std::vector<Case> chosen;
  for (size_t i = ChosenThird() % cases.size(); i < cases.size(); i += kThirds) {
    chosen.push_back(cases[i]);
  }
  std::printf("left out: %zu of %zu %s, all but third %llu\n", cases.size() - chosen.size(),
              cases.size(), what, static_cast<unsigned long long>(ChosenThird()));
  return chosen;
}

}  // namespace hdps
