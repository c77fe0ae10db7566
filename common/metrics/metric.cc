// Looks up the words of metrics and computes their figures.
#include "common/metrics/metric.h"

#include <algorithm>
#include <charconv>

#include "common/base/nearest_name.h"
#include "common/metrics/metric_name.h"
#include "common/metrics/metric_records.h"

namespace hdps {
namespace {

constexpr size_t kPlacesMax = 100'000;

const std::vector<MetricRecord>& Records() {
  static const std::vector<MetricRecord> records = [] {
    std::vector<MetricRecord> all = ThresholdMetrics();
    for (MetricRecord& record : GroupMetrics()) all.push_back(std::move(record));
    return all;
  }();
  return records;
}

std::vector<std::string> Words() {
  std::vector<std::string> words;
  for (const MetricRecord& record : Records()) {
    words.push_back(record.word + (record.number ? "@10" : ""));
  }
  return words;
}

}  // namespace

std::optional<KnownMetric> FindMetric(const std::string& word) {
  const size_t at = word.find('@');
  const std::string name = word.substr(0, at);
  const auto found = std::ranges::find(Records(), name, &MetricRecord::word);
  if (found == Records().end() || found->number != (at != std::string::npos)) return std::nullopt;
  KnownMetric known{&*found, 0};
  if (!found->number) return known;
  const char* const begin = word.data() + at + 1;
  const char* const end = word.data() + word.size();
  const auto [read, error] = std::from_chars(begin, end, known.k);
  if (error != std::errc() || read != end || known.k < 1 || known.k > kPlacesMax) {
    return std::nullopt;
  }
  return known;
}

bool IsMetric(const std::string& word) { return FindMetric(word).has_value(); }

bool HasMeaning(const std::string& word, ScoreKind kind) {
  const auto known = FindMetric(word);
  return known && std::ranges::find(known->record->kinds, kind) != known->record->kinds.end();
}

bool HigherIsBetter(const std::string& word) {
  const auto known = FindMetric(word.substr(word.find('.') + 1));
  if (known) return known->record->higher_is_better;
  return word.find("loss") == std::string::npos && word.find("error") == std::string::npos;
}

bool NeedsGroups(const std::string& word) {
  const auto known = FindMetric(word);
  return known && known->record->order == ScoreOrder::kByGroup;
}

bool IsFigureName(std::string_view name) {
  constexpr size_t kNameBytesMax = 64;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto fits = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '@';
  };
  return !name.empty() && name.size() <= kNameBytesMax && is_letter(name[0]) &&
         std::ranges::all_of(name, fits);
}

std::string MetricName(const std::string& figure) {
  const size_t dot = figure.find_last_of('.');
  const std::string word = dot == figure.npos ? figure : figure.substr(dot + 1);
  const auto known = FindMetric(word);
  if (!known) return figure;
  const std::string places = known->record->number ? "@" + std::to_string(known->k) : "";
  return (dot == figure.npos ? "" : figure.substr(0, dot) + ": ") + known->record->name + places;
}

std::string WhyNoMetric(const std::string& word) {
  std::string all;
  for (const std::string& known : Words()) all += (all.empty() ? "" : ", ") + known;
  const std::string nearest = DidYouMean(word, Words());
  return "\"" + word + "\" is no metric" +
         (nearest.empty() ? "; use one of " + all + " (with any number of places from 1)"
                          : nearest);
}

std::vector<std::string> DefaultMetrics(ScoreKind kind, bool groups) {
  switch (kind) {
    case ScoreKind::kProbability:
      return {"auc", "logloss"};
    case ScoreKind::kNumber:
      return {"rmse", "mae"};
    case ScoreKind::kClass:
      return {"logloss"};
    case ScoreKind::kRank:
      break;
  }
  return {groups ? "group_auc" : "auc"};
}

std::string MetricWordsText() {
  std::string text;
  for (const MetricRecord& record : Records()) {
    text += (text.empty() ? "" : "; ") + ("`" + record.word + (record.number ? "@k" : "") + "`: ") +
            record.doc;
  }
  return text + ". The last three need a group column.";
}

const Figure* FindFigure(const std::vector<Figure>& figures, std::string_view word) {
  for (const Figure& figure : figures) {
    if (figure.word == word) return &figure;
  }
  for (const Figure& figure : figures) {
    const size_t dot = figure.word.find_last_of('.');
    if (dot != std::string::npos && std::string_view(figure.word).substr(dot + 1) == word) {
      return &figure;
    }
  }
  return nullptr;
}

}  // namespace hdps
