// Makes samples of the messages about predictions, and lists their fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/buffer.h"
#include "common/protocol/predict/predict_messages.h"

namespace hdps {

inline bool operator==(const SentColumn& a, const SentColumn& b) {
  return std::tie(a.name, a.form, a.cells, a.lists) == std::tie(b.name, b.form, b.cells, b.lists);
}
inline bool operator==(const SentName& a, const SentName& b) { return a.name == b.name; }
inline bool operator==(const SentOutput& a, const SentOutput& b) {
  return std::tie(a.name, a.width, a.texts) == std::tie(b.name, b.width, b.texts);
}
inline bool operator==(const SentTensor& a, const SentTensor& b) {
  return std::tie(a.name, a.datatype, a.width) == std::tie(b.name, b.datatype, b.width);
}

namespace testing_samples {

inline Buffer FloatsFrom(const std::vector<float>& floats) { return Buffer::CopyOf<float>(floats); }
inline Buffer EndsOf(const std::vector<uint32_t>& ends) { return Buffer::CopyOf<uint32_t>(ends); }
inline Buffer TextsOf(const std::string& texts) {
  return Buffer::CopyOf(std::as_bytes(std::span(texts)));
}

// Two rows: texts "ab" and "c", lists {"x"} and {"yz", ""}, a whole number for both, floats and
// doubles.
inline PredictRequest SamplePredict() {
  return {"census",
          640,
          {{"probability"}, {"top_k"}},
          9,
          2,
          {{"city", CellForm::kTexts, 2, false},
           {"tags", CellForm::kTexts, 2, true},
           {"age", CellForm::kIntegers, 1, false},
           {"price", CellForm::kFloats, 2, false},
           {"rate", CellForm::kDoubles, 2, false}},
          EndsOf({0, 2, 3, 0, 1, 3, 3, 4, 6, 6}),
          TextsOf("abcxyz"),
          Buffer::CopyOf<int64_t>(std::vector<int64_t>{-7}),
          FloatsFrom({-1, -0.5F}),
          Buffer::CopyOf<double>(std::vector<double>{0.25, -1}),
          "deep",
          "request 7"};
}

inline PredictReply SampleScores() {
  return {Code::kNotFound,
          "no step 7",
          "census",
          640,
          2,
          {{"probability", 1, false}, {"top_k", 2, true}, {"top_k_score", 2, false}},
          {{"city", "BYTES", 1}, {"price", "FP32", 1}},
          {{"probability", "FP32", 1}},
          true,
          FloatsFrom({1, 2, 3, 4, 5, 6}),
          EndsOf({0, 1, 1, 3, 4}),
          TextsOf("abcd")};
}

inline auto Fields(const PredictRequest& m) {
  const auto& [a, b, c, d, e, f, ends, texts, integers, floats, doubles, table, id] = m;
  return std::tie(a, b, c, d, e, f, ends, texts, integers, floats, doubles, table, id);
}
inline auto Fields(const PredictReply& m) {
  const auto& [a, b, c, d, e, f, takes, gives, ready, numbers, ends, texts] = m;
  return std::tie(a, b, c, d, e, f, takes, gives, ready, numbers, ends, texts);
}

}  // namespace testing_samples
}  // namespace hdps
