// Assumes that the most frequent values of each feature are kept, and that the others travel.
#include "tools/plan/kept_choices.h"

#include <algorithm>
#include <cmath>

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/train_spec.h"
#include "tools/plan/row_tiers.h"

namespace hdps {
namespace {

constexpr double kFloatBytes = sizeof(float), kBitsOfByte = 8;

// A recipe has one setting for all its tables.
bool IsRecipe(const Job& job) { return job.model.type != "graph"; }

KeptRowsOption OptionOf(const Job& job, const JobShape& shape, const TablesOfChoice& tables,
                        const KeptRowsQuestion& question, uint64_t kept) {
  KeptRowsOption option = {.rows = kept};
  if (kept == 0) return option;
  const StepRates& rates = question.rates;
  const double workers = question.workers, batch = job.train.batch_size;
  const double values = std::max(question.rows / std::max(shape.keys, 1u), 1.0);
  // A summed float leaves a worker as often as in an allreduce.
  const double sent = 2 * (workers - 1) / workers;
  for (size_t t = tables.begin; t < tables.end; ++t) {
    const JobShape::Table& table = shape.tables[t];
    const auto met_by = [&](double examples) {
      return table.dim * table.features *
             ExpectedDistinctOfFirst(double(kept) / table.features, values, question.zipf,
                                     examples);
    };
    const double own = met_by(batch / workers), all = met_by(batch);
    option.seconds +=
        all * (sent * kFloatBytes / rates.link_bytes_per_second + rates.update_float_seconds) -
        2 * own * rates.row_float_seconds;
    option.bytes += std::ceil(kFloatBytes * double(kept) * (table.dim + table.state_floats));
  }
  // Workers tell each other which rows they have, a bit a row, and then sum these.
  constexpr double kSums = 2, kExchangesOfSum = 2;
  if (workers > 1) option.seconds += kSums * kExchangesOfSum * rates.exchange_seconds;
  option.seconds += sent * double(kept) / kBitsOfByte / rates.link_bytes_per_second;
  return option;
}

}  // namespace

TablesOfChoice TablesOf(const Job& job, const JobShape& shape, size_t choice) {
  if (IsRecipe(job)) return {0, shape.tables.size()};
  return {choice, choice + 1};
}

std::vector<KeptRowsChoices> KeptRowsOf(const Job& job, const JobShape& shape,
                                        const KeptRowsQuestion& question,
                                        const std::function<bool(const std::string&)>& fits) {
  std::vector<KeptRowsChoices> all;
  const size_t count = IsRecipe(job) ? std::min<size_t>(shape.tables.size(), 1)  //
                                     : shape.tables.size();
  for (size_t c = 0; c < count; ++c) {
    KeptRowsChoices& choices = all.emplace_back();
    choices.setting = IsRecipe(job) ? "model.vocab_cache_size"
                                    : "model.tables." + std::to_string(c) + ".vocab_cache_size";
    const TablesOfChoice tables = TablesOf(job, shape, c);
    const auto said = static_cast<uint64_t>(shape.tables[c].kept_rows);
    choices.options.push_back(OptionOf(job, shape, tables, question, said));
    constexpr uint64_t kFewest = 100;
    if (said > 0 || !fits(choices.setting + "=" + std::to_string(kFewest))) continue;
    for (uint64_t kept = kFewest; double(kept) <= question.rows / 10; kept *= 10) {
      choices.options.push_back(OptionOf(job, shape, tables, question, kept));
    }
  }
  return all;
}

StepRates OverNetwork(StepRates rates, double bytes_per_second, double round_trip_us,
                      uint32_t servers, uint32_t workers) {
  if (bytes_per_second == 0) return rates;
  const double busier = std::max(1.0, double(workers) / servers);  // A server's link.
  rates.link_bytes_per_second = std::min(rates.link_bytes_per_second, bytes_per_second);
  rates.row_float_seconds += busier * kFloatBytes / bytes_per_second;
  rates.exchange_seconds += 1e-6 * round_trip_us;
  return rates;
}

}  // namespace hdps
