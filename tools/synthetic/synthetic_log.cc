// Computes rows from (seed, index), labels from the teacher, and lines in Criteo's layout.
#include "tools/synthetic/synthetic_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "common/metrics/score_book.h"
#include "common/platform/random.h"
#include "tools/synthetic/fresh_file.h"

namespace hdps {
namespace {

constexpr uint32_t kNumbersMax = 13;
constexpr uint32_t kCategoriesMax = 26;
constexpr uint64_t kFirstEvalRow = uint64_t{1} << 60;
constexpr uint64_t kFirstCalibrationRow = uint64_t{1} << 61;
constexpr uint64_t kCalibrationRows = 8192;
constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr double kLog1pMax = 12;  // Counts stay below 163,000, as in real logs.

// Independent streams of the seed.
constexpr uint64_t kRowStream = 1, kTeacherStream = 2, kShapeStream = 3;

double Sigmoid(double logit) { return 1 / (1 + std::exp(-logit)); }

// Permutes 32 bits, so that the values of a field have different texts in no order.
uint32_t Scramble(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

struct Moments {
  double mean, deviation;
};

Moments MomentsOf(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / count)};
}

Status CheckSpec(const SyntheticLogSpec& spec) {
  const auto within = [](double value, double max) { return value >= 0 && value <= max; };
  const auto share = [](double value) { return value >= 0 && value < 1; };
  const struct {
    const char* field;
    std::string value;
    bool good;
    const char* expected;
  } fields[] = {
      {"numeric", std::to_string(spec.numeric), spec.numeric <= kNumbersMax, "at most 13"},
      {"categorical", std::to_string(spec.categorical), spec.categorical <= kCategoriesMax,
       "at most 26"},
      {"numeric", "0", spec.numeric + spec.categorical > 0,
       "at least one column, numeric or categorical"},
      {"vocabulary", std::to_string(spec.vocabulary),
       spec.vocabulary >= 1 && spec.vocabulary <= uint64_t{1} << 32, "1 to 2^32"},
      {"zipf", std::to_string(spec.zipf), within(spec.zipf, 10), "an exponent from 0 to 10"},
      {"signal", std::to_string(spec.signal), within(spec.signal, 100),
       "a deviation from 0 to 100"},
      {"ctr", std::to_string(spec.ctr), spec.ctr > 0 && spec.ctr < 1, "a share between 0 and 1"},
      {"noise", std::to_string(spec.noise), share(spec.noise), "a share below 1"},
      {"missing", std::to_string(spec.missing), share(spec.missing), "a share below 1"}};
  for (const auto& field : fields) {
    if (field.good) continue;
    return {Code::kInvalidArgument,
            std::string("--") + field.field + "=" + field.value + ": expected " + field.expected};
  }
  return {};
}

// Returns sum over pairs of p_i (1 - p_j) [p_i > p_j], ties half, over sum of p_i (1 - p_j).
double ExpectedAuc(std::vector<double> probabilities) {
  std::sort(probabilities.begin(), probabilities.end());
  double negatives = 0, positives = 0, won = 0;
  for (size_t i = 0; i < probabilities.size();) {
    size_t end = i;
    double tied_negatives = 0, tied_positives = 0;
    for (; end < probabilities.size() && probabilities[end] == probabilities[i]; ++end) {
      tied_positives += probabilities[end];
      tied_negatives += 1 - probabilities[end];
    }
    won += tied_positives * (negatives + tied_negatives / 2);
    negatives += tied_negatives;
    positives += tied_positives;
    i = end;
  }
  return won / (positives * negatives);
}

}  // namespace

SyntheticLog::SyntheticLog(const SyntheticLogSpec& spec)
    : spec_(spec),
      teacher_(spec.family, RandomAt(spec.seed, kTeacherStream)),
      zipf_(spec.vocabulary, spec.zipf) {
  Random shape(RandomAt(spec.seed, kShapeStream));
  for (uint32_t j = 0; j < spec.numeric; ++j) {
    number_mean_.push_back(0.5 + 1.5 * shape.Unit());
    number_deviation_.push_back(0.5 + 0.5 * shape.Unit());
  }
  Calibrate();
}

double SyntheticLog::DrawFeatures(uint64_t index, SyntheticRow* row) const {
  Random random(RandomAt(RandomAt(spec_.seed, kRowStream), index));
  row->numbers.resize(spec_.numeric);
  row->values.resize(spec_.categorical);
  for (uint32_t j = 0; j < spec_.numeric; ++j) {
    const double log_count = number_mean_[j] + number_deviation_[j] * random.Normal();
    const double count = std::floor(std::expm1(std::clamp(log_count, 0.0, kLog1pMax)) + 0.5);
    const bool missing = random.Unit() < spec_.missing;
    row->numbers[j] = missing ? SyntheticRow::kNoNumber : static_cast<int64_t>(count);
  }
  for (uint64_t& value : row->values) {
    value = zipf_.Draw(random);
    if (random.Unit() < spec_.missing) value = spec_.vocabulary;
  }
  return random.Unit();
}

SyntheticLog::Parts SyntheticLog::PartsOf(const SyntheticRow& row) const {
  std::array<double, kNumbersMax> numbers;
  for (uint32_t j = 0; j < spec_.numeric; ++j) {
    // A missing number counts as the reader reads it: 0 after log1p.
    const auto count = static_cast<double>(std::max<int64_t>(0, row.numbers[j]));
    numbers[j] = (std::log1p(count) - number_mean_[j]) / number_deviation_[j];
  }
  const TeacherInput input = {row.values, std::span(numbers).first(spec_.numeric)};
  return {teacher_.Linear(input), teacher_.Interaction(input)};
}

double SyntheticLog::LogitOf(const SyntheticRow& row) const {
  const Parts parts = PartsOf(row);
  return bias_ + linear_factor_ * parts.linear + interaction_factor_ * parts.interaction;
}

// Scales the parts to the requested deviation, and the mean probability to the CTR.
void SyntheticLog::Calibrate() {
  std::vector<double> linear, interaction, logits;
  SyntheticRow row;
  for (uint64_t i = 0; i < kCalibrationRows; ++i) {
    DrawFeatures(kFirstCalibrationRow + i, &row);
    const Parts parts = PartsOf(row);
    linear.push_back(parts.linear);
    interaction.push_back(parts.interaction);
  }
  const auto factor = [](double scale, const std::vector<double>& values) {
    const double deviation = MomentsOf(values).deviation;
    return deviation > 0 ? scale / deviation : 0;
  };
  linear_factor_ = factor(teacher_.linear_scale(), linear);
  interaction_factor_ = factor(teacher_.interaction_scale(), interaction);
  for (uint64_t i = 0; i < kCalibrationRows; ++i) {
    logits.push_back(linear_factor_ * linear[i] + interaction_factor_ * interaction[i]);
  }
  const Moments raw = MomentsOf(logits);
  const double stretch = raw.deviation > 0 ? spec_.signal / raw.deviation : 0;
  linear_factor_ *= stretch;
  interaction_factor_ *= stretch;

  double low = -200 - stretch * std::abs(raw.mean), high = -low;
  for (int step = 0; step < 100; ++step) {
    bias_ = (low + high) / 2;
    double mean = 0;
    for (double logit : logits) mean += Sigmoid(bias_ + stretch * logit) / kCalibrationRows;
    (mean < spec_.ctr ? low : high) = bias_;
  }
}

void SyntheticLog::RowAt(uint64_t index, SyntheticRow* row) const {
  const double chance = DrawFeatures(index, row);
  row->probability = (1 - spec_.noise) * Sigmoid(LogitOf(*row)) + spec_.noise * spec_.ctr;
  row->label = chance < row->probability;
}

void AppendCriteoLine(const SyntheticRow& row, uint64_t vocabulary, std::string* text) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr uint32_t kFieldStride = 0x9e3779b9;
  text->push_back(row.label ? '1' : '0');
  for (size_t j = 0; j < kNumbersMax; ++j) {
    text->push_back('\t');
    if (j >= row.numbers.size() || row.numbers[j] == SyntheticRow::kNoNumber) continue;
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), row.numbers[j]).ptr;
    text->append(digits.begin(), end);
  }
  for (size_t f = 0; f < kCategoriesMax; ++f) {
    text->push_back('\t');
    if (f >= row.values.size() || row.values[f] == vocabulary) continue;
    const uint32_t value =
        Scramble(static_cast<uint32_t>(row.values[f]) + static_cast<uint32_t>(f) * kFieldStride);
    for (int shift = 28; shift >= 0; shift -= 4) text->push_back(kHex[(value >> shift) & 15]);
  }
  text->push_back('\n');
}

namespace {

// Writes rows [first, first + count); calls `see` with each row first.
template <typename See>
Status WriteRows(FileSystem& files, const std::string& path, const SyntheticLog& log,
                 uint64_t first, uint64_t count, See&& see) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, CreateFresh(files, path));
  std::string text;
  SyntheticRow row;
  for (uint64_t i = 0; i < count; ++i) {
    log.RowAt(first + i, &row);
    see(row);
    AppendCriteoLine(row, log.spec().vocabulary, &text);
    if (text.size() < kWriteBytes && i + 1 < count) continue;
    HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
    text.clear();
  }
  return file->Close();
}

}  // namespace

Result<BestReachable> WriteSyntheticLog(FileSystem& files, const std::string& dir,
                                        const SyntheticLogSpec& spec) {
  HDPS_RETURN_IF_ERROR(CheckSpec(spec));
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(dir));
  const SyntheticLog log(spec);
  HDPS_RETURN_IF_ERROR(
      WriteRows(files, dir + "/train.tsv", log, 0, spec.rows, [](const SyntheticRow& /*row*/) {}));
  std::vector<double> probabilities;
  std::vector<float> logits, labels;
  HDPS_RETURN_IF_ERROR(WriteRows(files, dir + "/eval.tsv", log, kFirstEvalRow, spec.eval_rows,
                                 [&](const SyntheticRow& row) {
                                   const double p = row.probability;
                                   probabilities.push_back(p);
                                   logits.push_back(static_cast<float>(std::log(p / (1 - p))));
                                   labels.push_back(row.label ? 1.0f : 0.0f);
                                 }));
  ScoreBook book(files, dir + "/scores",
                 {{.task = "", .kind = ScoreKind::kProbability, .words = {"auc", "logloss"}}});
  HDPS_RETURN_IF_ERROR(book.Add(logits, labels, {}, {}));
  HDPS_ASSIGN_OR_RETURN(const ScoreBook::Told told, book.Finish(0));
  BestReachable best;
  best.auc = told.figures.at(0).value;
  best.expected_auc = ExpectedAuc(std::move(probabilities));
  best.logloss = told.figures.at(1).value;
  best.ctr = std::accumulate(labels.begin(), labels.end(), 0.0) /
             static_cast<double>(std::max<size_t>(1, labels.size()));
  return best;
}

}  // namespace hdps
