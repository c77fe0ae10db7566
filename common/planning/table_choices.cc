// Assumes that the most frequent values of a table are kept, that the others travel, and that a
// step waits for the server that most of them are asked of.
#include "common/planning/table_choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/table_slices.h"

namespace hdps {
namespace {

constexpr double kFloatBytes = sizeof(float), kBitsOfByte = 8;

// A recipe has one setting for all its tables.
bool IsRecipe(const Job& job) { return job.model.type != "graph"; }

size_t KeyedTables(const Job& job) {
  return static_cast<size_t>(std::ranges::count(job.tables, false, &TableSpec::dense));
}

// Counts the rows of one feature that the workers ask servers for in a step: how often any of them,
// and the sum over the rows of the square of how often.
struct FeatureLoad {
  double asked = 0, squares = 0;
};

class TableCosts {
 public:
  TableCosts(const Job& job, const TableQuestion& question, const TableSpec& table)
      : job_(job), question_(question), table_(table) {
    features_ = FeaturesOfTable(job, table.name);
    const std::vector<std::string> names = FeaturesOf(job.data).sparse;
    for (const uint32_t feature : features_) {
      const auto law = question.laws.find(names[feature]);
      if (law != question.laws.end()) laws_.push_back(law->second);
    }
    if (known()) all_ = Loads(0);
  }

  bool known() const { return laws_.size() == features_.size(); }
  double values() const {
    return std::accumulate(laws_.begin(), laws_.end(), 0.0,
                           [](double sum, const ValueLaw& law) { return sum + law.values; });
  }

  double KeptBytes(uint64_t kept) const {
    const double state = RecordOf(table_.optimizer).StateFloats(table_.dim);
    return kept == 0 ? 0 : std::ceil(kFloatBytes * double(kept) * (table_.dim + state));
  }

  // Returns what keeping rows adds to the work of rows and sums.
  double KeptSeconds(uint64_t kept) const {
    if (kept == 0) return 0;
    const StepRates& rates = question_.rates;
    const double workers = question_.workers;
    // A summed float leaves a worker as often as in an allreduce.
    const double sent = 2 * (workers - 1) / workers;
    const double all = table_.dim * KeptMet(kept, workers * Examples());
    return all * (sent * kFloatBytes / rates.link_bytes_per_second + rates.update_float_seconds) -
           2 * KeptMet(kept, Examples()) * RowSeconds(1) +
           sent * double(kept) / kBitsOfByte / rates.link_bytes_per_second;
  }

  // Returns what a step waits longer for the busiest server than for servers with equal loads, if
  // rows of the most frequent values are kept and the others are spread by hash.
  double ByHash(uint64_t kept) const {
    const std::vector<FeatureLoad> loads = kept == 0 ? all_ : Loads(kept);
    return Waiting(BusiestByHash(loads, question_.servers) * RowSeconds(1), 1, loads);
  }

  // Returns the time of a step's rows if servers have equal loads.
  double Even() const {
    double asked = 0;
    for (const FeatureLoad& load : all_) asked += load.asked;
    return 2 * asked / question_.workers * RowSeconds(1);
  }

  // Returns what a step waits longer if rows are in `parts` parts, each at as many of the servers.
  double ByColumns(uint32_t parts) const {
    if (table_.dim == 1) return ByHash(0);  // As tables of a recipe that stay whole.
    return Waiting(BusiestByHash(all_, question_.servers / parts) * RowSeconds(parts), parts, all_);
  }

  // Likewise for all rows of a feature at one server.
  double ByFeatures(const std::vector<uint32_t>& manual_shapes) const {
    TableSpec cut = table_;
    cut.slice_mode = SliceMode::kField;
    cut.manual_shapes = manual_shapes;
    const std::vector<uint32_t> shards = FieldShards(job_, cut, features_);
    std::vector<double> of_server(question_.servers, 0);
    for (size_t f = 0; f < shards.size(); ++f) {
      of_server[uint64_t{shards[f]} * question_.servers / job_.cluster.shards] += all_[f].asked;
    }
    return Waiting(*std::ranges::max_element(of_server) * RowSeconds(1), 1, all_);
  }

  // Returns the numbers of features, one behind the other, that make the largest load of as many
  // parts as servers smallest; empty if there are fewer features than servers.
  std::vector<uint32_t> EvenShapes() const {
    const std::vector<FeatureLoad>& loads = all_;
    const size_t servers = question_.servers;
    if (loads.size() < servers) return {};
    const auto shapes_within = [&](double most) {
      std::vector<uint32_t> shapes(1, 0);
      double sum = 0;
      for (size_t f = 0; f < loads.size(); ++f) {
        const size_t left = loads.size() - f, parts_left = servers - shapes.size();
        if (shapes.back() > 0 && parts_left > 0 &&
            (sum + loads[f].asked > most || left == parts_left)) {
          shapes.push_back(0);
          sum = 0;
        }
        sum += loads[f].asked;
        ++shapes.back();
        if (sum > most && shapes.back() > 1) return std::vector<uint32_t>();
      }
      return shapes;
    };
    double low = 0, high = 0;
    for (const FeatureLoad& load : loads) {
      low = std::max(low, load.asked);
      high += load.asked;
    }
    constexpr int kHalvings = 50;
    for (int halving = 0; halving < kHalvings; ++halving) {
      const double middle = (low + high) / 2;
      (shapes_within(middle).empty() ? low : high) = middle;
    }
    return shapes_within(high);
  }

  size_t features() const { return features_.size(); }
  const TableSpec& table() const { return table_; }

 private:
  double Examples() const { return double(job_.train.batch_size) / question_.workers; }
  // Returns the seconds of a part of a row, to or from a server.
  double RowSeconds(uint32_t parts) const {
    const StepRates& rates = question_.rates;
    return double(table_.dim) / parts * rates.row_float_seconds + rates.row_seconds;
  }

  double KeptMet(uint64_t kept, double examples) const {
    const std::vector<double> first = MostFrequentOf(laws_, double(kept));
    double met = 0;
    for (size_t f = 0; f < laws_.size(); ++f) {
      met += ExpectedDistinctOfFirst(first[f], laws_[f].values, laws_[f].exponent, examples);
    }
    return met;
  }

  std::vector<FeatureLoad> Loads(uint64_t kept) const {
    const std::vector<double> first = MostFrequentOf(laws_, double(kept));
    const double workers = question_.workers;
    std::vector<FeatureLoad> loads;
    for (size_t f = 0; f < laws_.size(); ++f) {
      const auto& [values, exponent] = laws_[f];
      const double others = ExpectedDistinct(values, exponent, Examples()) -
                            ExpectedDistinctOfFirst(first[f], values, exponent, Examples());
      loads.push_back({workers * others,
                       workers * workers * SquaresBehindFirst(first[f], laws_[f], Examples())});
    }
    return loads;
  }

  // Returns how often the busiest of the servers is asked for a row, by the bound for the largest
  // of n normal variables, deviation sqrt(2 ln n) above their mean: the deviation of a server's
  // load is that of a sum over the rows, each at this server with the chance 1 / n. Rows that every
  // worker asks for in every step weigh most.
  static double BusiestByHash(const std::vector<FeatureLoad>& loads, double servers) {
    double asked = 0, squares = 0;
    for (const FeatureLoad& load : loads) {
      asked += load.asked;
      squares += load.squares;
    }
    const double variance = squares / servers * (1 - 1 / servers);
    return std::min(asked, asked / servers + std::sqrt(2 * std::log(servers) * variance));
  }

  // Rows come and go at the same time over all links, so the longest takes the time: that of the
  // busiest server, or the worker's own.
  double Waiting(double busiest_seconds, uint32_t parts,
                 const std::vector<FeatureLoad>& loads) const {
    double asked = 0;
    for (const FeatureLoad& load : loads) asked += load.asked;
    const double own = asked / question_.workers;
    const double at_server =
        busiest_seconds * std::min(question_.servers, question_.workers) / question_.workers;
    return 2 * (std::max(own * parts * RowSeconds(parts), at_server) - own * RowSeconds(1));
  }

  const Job& job_;
  const TableQuestion& question_;
  const TableSpec& table_;
  std::vector<uint32_t> features_;
  std::vector<ValueLaw> laws_;
  std::vector<FeatureLoad> all_;  // Of all rows; empty unless the laws are known.
};

class Choices {
 public:
  using Fits = std::function<bool(const std::vector<std::string>& settings)>;

  Choices(const Job& job, const TableQuestion& question, size_t choice, const Fits& fits)
      : job_(job), question_(question), fits_(fits) {
    place_ = IsRecipe(job) ? "model." : "model.tables." + std::to_string(choice) + ".";
    const TablesOfChoice of = TablesOf(job, choice);
    for (size_t t = of.begin; t < of.end; ++t) costs_.emplace_back(job, question, job.tables[t]);
    said_ = job.tables[of.begin].vocab_cache_size;
    hashed_ = job.tables[of.begin].slice_mode == SliceMode::kBatch;
  }

  TableChoices Run() {
    const bool known = std::ranges::all_of(costs_, &TableCosts::known);
    AddKept(said_, known, {});
    if (!known) return std::move(choices_);
    if (IsOpen("vocab_cache_size") && said_ == 0) {
      constexpr uint64_t kFewest = 100;
      constexpr double kMost = 1e6;  // More take much memory of a worker for little.
      const std::string place = place_ + "vocab_cache_size=";
      const bool fits = fits_({place + std::to_string(kFewest)});
      const double values = costs_[0].values();
      const double most = std::min(values / 10, kMost);
      for (uint64_t kept = kFewest; fits && double(kept) <= most; kept *= 10) {
        AddKept(kept, known, {place + std::to_string(kept)});
      }
    }
    if (IsOpen("slice_mode") && said_ == 0 && question_.servers > 1) AddCuts();
    return std::move(choices_);
  }

 private:
  bool IsOpen(const std::string& key) const {
    const std::vector<std::string>& open = job_.parallel.open_settings;
    return std::ranges::find(open, place_ + key) != open.end();
  }

  template <typename Cost>
  double Sum(const Cost& cost) const {
    double sum = 0;
    for (const TableCosts& table : costs_) sum += cost(table);
    return sum;
  }

  void AddKept(uint64_t kept, bool known, std::vector<std::string> settings) {
    TableOption option = {.kept = kept, .settings = std::move(settings)};
    option.bytes = Sum([kept](const TableCosts& of) { return of.KeptBytes(kept); });
    if (kept > 0 && known) {
      option.seconds = Sum([kept](const TableCosts& of) { return of.KeptSeconds(kept); });
      if (hashed_) {
        option.seconds +=
            Sum([kept](const TableCosts& of) { return of.ByHash(kept) - of.ByHash(0); });
      }
      // Workers tell each other which rows they have, a bit a row, and then sum these.
      constexpr double kSums = 2;
      if (question_.workers > 1) option.seconds += kSums * question_.rates.exchange_seconds;
    }
    choices_.options.push_back(std::move(option));
  }

  // Adds a cut if it saves a noticeable share of the rows' time beside the spread by hash.
  void AddCut(double seconds, const std::string& cut, const std::vector<std::string>& settings) {
    const double by_hash = Sum([](const TableCosts& of) { return of.ByHash(0); });
    constexpr double kShareSaved = 0.02;
    const double even = Sum([](const TableCosts& of) { return of.Even(); });
    if (by_hash - seconds < kShareSaved * even || by_hash <= seconds || !fits_(settings)) return;
    choices_.options.push_back({.seconds = seconds - by_hash, .cut = cut, .settings = settings});
  }

  void AddCuts() {
    AddFields({});
    if (const std::vector<uint32_t> shapes = costs_[0].EvenShapes(); !shapes.empty()) {
      AddFields(shapes);
    }
    for (uint32_t parts = 2; parts <= question_.servers; parts *= 2) {
      if (question_.servers % parts != 0) continue;
      AddCut(Sum([parts](const TableCosts& of) { return of.ByColumns(parts); }),
             "columns in " + std::to_string(parts) + " parts",
             {place_ + "slice_mode=table_column_slice",
              place_ + "column_slices=" + std::to_string(parts)});
    }
  }

  // Cuts by features, in the same parts for all tables.
  void AddFields(const std::vector<uint32_t>& shapes) {
    const size_t features = costs_[0].features();
    if (features < question_.servers ||
        !std::ranges::all_of(
            costs_, [features](const TableCosts& of) { return of.features() == features; })) {
      return;
    }
    std::string list;
    for (const uint32_t part : shapes) {
      list += (list.empty() ? "" : ", ") + std::to_string(part);
    }
    std::vector<std::string> settings = {place_ + "slice_mode=field_slice"};
    if (!shapes.empty()) settings.push_back(place_ + "manual_shapes=[" + list + "]");
    AddCut(Sum([&shapes](const TableCosts& of) { return of.ByFeatures(shapes); }),
           shapes.empty() ? "features in equal parts" : "parts of " + list + " features", settings);
  }

  const Job& job_;
  const TableQuestion& question_;
  const Fits& fits_;
  std::string place_;
  std::vector<TableCosts> costs_;
  uint64_t said_ = 0;
  bool hashed_ = true;
  TableChoices choices_;
};

}  // namespace

TablesOfChoice TablesOf(const Job& job, size_t choice) {
  if (IsRecipe(job)) return {0, KeyedTables(job)};
  return {choice, choice + 1};
}

std::vector<TableChoices> TableChoicesOf(
    const Job& job, const TableQuestion& question,
    const std::function<bool(const std::vector<std::string>& settings)>& fits) {
  std::vector<TableChoices> all;
  const size_t tables = KeyedTables(job);
  const size_t count = IsRecipe(job) ? std::min<size_t>(tables, 1) : tables;
  for (size_t c = 0; c < count; ++c) all.push_back(Choices(job, question, c, fits).Run());
  return all;
}

StepRates OverNetwork(StepRates rates, double bytes_per_second, double round_trip_us,
                      uint32_t servers, uint32_t workers) {
  if (bytes_per_second == 0) return rates;
  const double busier = std::max(1.0, double(workers) / servers);  // A server's link.
  rates.link_bytes_per_second = std::min(rates.link_bytes_per_second, bytes_per_second);
  constexpr double kKeyBytes = 8;
  rates.row_float_seconds += busier * kFloatBytes / bytes_per_second;
  rates.row_seconds += busier * kKeyBytes / bytes_per_second;
  rates.exchange_seconds += 1e-6 * round_trip_us;
  return rates;
}

}  // namespace hdps
