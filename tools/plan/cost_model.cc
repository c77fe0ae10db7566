// Adds up a step's costs: the worker's chain, compared with each server, link and reader.
#include "tools/plan/cost_model.h"

#include <algorithm>

#include "common/planning/key_law.h"
#include "kernels/products/unique_row_gemm.h"
#include "tools/plan/kept_rows.h"
#include "tools/plan/memory_and_recovery.h"
#include "tools/plan/row_tiers.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

constexpr double kNano = 1e-9, kMicro = 1e-6;
constexpr double kFloatBytes = sizeof(float), kKeyBytes = 8;

// Rows and floats that one worker requests in one step.
struct Asked {
  double rows = 0;    // Rows of all tables.
  double floats = 0;  // Floats of these rows.
  // Floats that a push updates, converted to the measured rule by OfMeasuredRule().
  double pushed_floats = 0;
  double dense = 0, pushed_dense = 0;  // Through the servers; the second converted likewise.
  double changed_rows = 0, changed_floats = 0;  // Requested again at the step's turn.
};

// Computes the answer of Plan().
class Planner {
 public:
  Planner(const PlanQuestion& question, const MachineConstants& constants)
      : q_(question), c_(constants), examples_(double(q_.batch) / q_.workers) {}

  PlanAnswer Run() {
    AskRows();
    FetchRows();
    Compute();
    Read();
    Exchange();
    Step();
    AddMemory(q_, c_, asked_.rows, asked_.floats + asked_.dense, &answer_);
    AddRecovery(q_, c_, &answer_);
    return answer_;
  }

 private:
  double workers() const { return q_.workers; }
  double servers() const { return q_.servers; }
  bool ahead() const { return q_.lookahead > 0; }
  bool changes() const { return ahead() && q_.sync; }
  bool spread() const { return q_.machines > 0 && !q_.one_machine; }
  double workers_here() const { return spread() ? workers() / q_.machines : 1; }
  // Returns the share of a worker's exchanges with servers that leaves its machine.
  double away() const {
    if (q_.one_machine) return 0;
    return spread() ? 1 - 1.0 / q_.machines : 1;
  }
  const PathCosts& path() const {
    if (!q_.one_machine) return c_.socket;
    return q_.inproc ? c_.inproc : c_.local;
  }

  // Returns the least time of a sum over the workers: parts go out, and the whole comes back.
  double SumRounds() const {
    return 2 * kMicro * std::max(q_.network_round_trip_us, path().pull.base_us);
  }

  // Returns the distinct keys of one feature among those of `examples` examples.
  double DistinctOfFeature(double examples) const {
    const double values = std::max(q_.rows / std::max(q_.shape.keys, 1u), 1.0);
    return ExpectedDistinct(values, q_.zipf, examples);
  }

  void AskRows() {
    const double of_feature = DistinctOfFeature(examples_);
    answer_.unique_share = q_.unique_share > 0 ? q_.unique_share : of_feature / examples_;
    answer_.changed_share = q_.changed_share;
    if (q_.changed_share < 0) {
      // Counts the worker's keys that are also among the keys of all workers in the previous step.
      const double all = DistinctOfFeature(examples_ * workers());
      const double with_one_more = DistinctOfFeature(examples_ * (workers() + 1));
      answer_.changed_share = std::clamp((of_feature + all - with_one_more) / of_feature, 0.0, 1.0);
    }
    // A micro-batch repeats fewer of its keys than the whole batch.
    const double part = examples_ / q_.micro_batches;
    part_share_ = std::min(
        1.0, answer_.unique_share * DistinctOfFeature(part) / part * examples_ / of_feature);
    for (const JobShape::Table& table : q_.shape.tables) {
      double distinct = examples_ * table.features * answer_.unique_share;
      distinct -= kept_.Add(table, q_, of_feature, distinct);
      asked_.rows += distinct;
      asked_.floats += distinct * table.dim;
      asked_.pushed_floats += distinct * OfMeasuredRule(table.dim, table.state_floats);
      parts_rows_ += examples_ * table.features * part_share_;
      parts_floats_ += examples_ * table.features * part_share_ * table.dim;
    }
    if (changes()) {
      asked_.changed_rows = answer_.changed_share * asked_.rows;
      asked_.changed_floats = answer_.changed_share * asked_.floats;
    }
    asked_.dense = double(q_.allreduce ? q_.shape.floats_left_at_servers : q_.shape.dense_floats);
    const double share = asked_.dense / std::max(double(q_.shape.dense_floats), 1.0);
    asked_.pushed_dense = OfMeasuredRule(asked_.dense, share * double(q_.shape.dense_state_floats));
  }

  // Predicts the rows of a step that were evicted to disk since their last use.
  void FetchRows() {
    if (q_.row_memory_bytes < 0) return;
    const TierQuestion question = {.shape = q_.shape,
                                   .values = std::max(q_.rows / std::max(q_.shape.keys, 1u), 1.0),
                                   .zipf = q_.zipf,
                                   .draws = examples_ * workers(),
                                   .bytes = q_.row_memory_bytes * servers(),
                                   .index_bytes = c_.index_row_bytes};
    const RowTiers tiers = PlanTiers(question, q_.rows);
    answer_.share_in_memory = tiers.share_in_memory;
    answer_.rows_back = tiers.rows_back;
    answer_.rows_back_seconds = kMicro * c_.tier_row_back_us * answer_.rows_back;
  }

  // Returns the seconds of a layer's products on as many cores as were measured. Subtracts the
  // floats that a layer on distinct rows does not gather from `*embedding_floats`.
  double ProductSeconds(const Product& product, double* embedding_floats) {
    constexpr double kPasses = 3;  // Forward, the weights' gradient, the input's gradient.
    const double part = examples_ / q_.micro_batches;
    const auto plain = [&](double inputs) {
      return kPasses * 2 * inputs * product.units * examples_ /
             (c_.GflopsFor(inputs, product.units, part) * 1e9);
    };
    if (product.row_features == 0) return plain(product.inputs);
    const double keys = part * product.row_features;
    const UniqueRowGemmShape shape = {static_cast<size_t>(keys),
                                      static_cast<size_t>(keys * part_share_), product.row_dim,
                                      product.units};
    if (!q_.shape.always_on_rows && !UniqueRowGemmPays(shape)) return plain(product.inputs);
    answer_.first_layer_on_rows = true;
    const double embedding = double(product.row_features) * product.row_dim;
    *embedding_floats -= embedding;
    const double row_floats = keys * part_share_ * product.row_dim;
    const double on_rows = row_floats * (kPasses * 2 * product.units / (c_.model_row_gflops * 1e9) +
                                         kNano * c_.model_row_float_ns);
    const double gathered = kNano * keys * product.units * c_.model_gather_float_ns;
    return q_.micro_batches * (on_rows + gathered) + plain(product.inputs - embedding);
  }

  // Computes products and layers of one worker, on all cores of its machine.
  void Compute() {
    double products = 0;
    auto embedding_floats = double(q_.shape.embedding_floats);
    for (const Product& product : q_.shape.products) {
      products += ProductSeconds(product, &embedding_floats);
    }
    const double layers = kNano * examples_ *
                          (c_.model_example_ns + c_.model_embedding_float_ns * embedding_floats +
                           c_.model_activation_float_ns * double(q_.shape.activation_floats));
    // Cuts out the rows of each micro-batch, and sums their gradients and the dense ones.
    double merging = 0;
    if (q_.micro_batches > 1) {
      const double dense = q_.micro_batches * static_cast<double>(q_.shape.dense_floats);
      merging = kNano * (parts_rows_ * c_.model_merge_row_ns +
                         (parts_floats_ + dense) * c_.model_merge_float_ns);
    }
    const double faster = c_.cores / q_.cores;
    answer_.products_seconds = products * faster;
    answer_.compute_seconds = (products + layers) * faster + merging;
  }

  // Computes the time of the reader, one thread of the worker.
  void Read() {
    const double own = examples_ * q_.text_row_bytes, all = own * workers();
    double read = own * c_.read_byte_ns + (all - own) * c_.scan_byte_ns;
    if (q_.workers >= kPartsMany) {
      read = examples_ * (workers() * c_.draw_row_ns + c_.fetch_row_ns);
      answer_.first_epoch_seconds = kNano * all * c_.find_byte_ns;
      if (q_.first_epoch) read += all * c_.find_byte_ns;
    }
    const double keys = examples_ * q_.shape.keys;
    answer_.reader_seconds =
        kNano * (read + keys * (c_.dedup_key_ns + answer_.unique_share * c_.split_key_ns +
                                (q_.micro_batches > 1 ? c_.cut_key_ns : 0)));
  }

  // Returns the time of one exchange; part of it may stay on the worker's machine.
  double ChainOf(ExchangeCost PathCosts::*which, double floats, double dense) const {
    const auto over = [&](const PathCosts& way) {
      const ExchangeCost& cost = way.*which;
      return kMicro * cost.base_us + kNano * (asked_.rows * cost.row_ns + floats * cost.float_ns +
                                              dense * cost.dense_float_ns);
    };
    if (!spread()) return over(path());
    return away() * over(c_.socket) + (1 - away()) * over(c_.local);
  }

  void Exchange() {
    const double message = kMicro * c_.server_message_us;
    const double more_servers = message * (servers() - 1);
    answer_.pull_seconds =
        ChainOf(&PathCosts::pull, asked_.floats, ahead() ? 0 : asked_.dense) + more_servers;
    answer_.push_seconds =
        ChainOf(&PathCosts::push, asked_.pushed_floats, asked_.pushed_dense) + more_servers;
    const RepairCost& repair = path().repair;
    if (ahead()) {
      answer_.repair_seconds =
          kMicro * repair.base_us + more_servers +
          kNano * (asked_.rows * repair.row_ns + asked_.floats * repair.float_ns +
                   asked_.changed_rows * repair.changed_row_ns +
                   asked_.changed_floats * repair.changed_float_ns +
                   asked_.dense * path().pull.dense_float_ns);
    }
    answer_.exchange_seconds =
        answer_.push_seconds + (ahead() ? answer_.repair_seconds : answer_.pull_seconds);
    const double share = workers() / servers();
    const auto served = [&](double ns) {
      return share * kNano * ns / q_.cores + workers() * message;
    };
    const double dense_pull = asked_.dense * c_.server_dense_pull_float_ns;
    const double rows_back = answer_.rows_back_seconds / servers() / q_.cores;
    if (!ahead()) {
      answer_.pull_seconds += rows_back;
      answer_.exchange_seconds += rows_back;
    }
    server_pull_ =
        rows_back + served(asked_.rows * c_.server_pull_row_ns +
                           asked_.floats * c_.server_pull_float_ns + (ahead() ? 0 : dense_pull));
    server_push_ = served(asked_.rows * c_.server_push_row_ns +
                          asked_.pushed_floats * c_.server_push_float_ns +
                          asked_.pushed_dense * c_.server_dense_push_float_ns);
    if (ahead()) {
      server_repair_ = served((q_.sync ? asked_.rows * c_.server_pull_row_ns : 0) +
                              asked_.changed_floats * c_.server_pull_float_ns + dense_pull);
    }
    answer_.new_rows_seconds =
        share / q_.cores * kNano *
        (asked_.rows * c_.server_new_row_ns + asked_.floats * c_.server_new_float_ns);
    // Other rows leave memory for the new ones.
    if (answer_.share_in_memory < 1) {
      answer_.new_rows_seconds += share / q_.cores * kMicro * c_.tier_row_back_us * asked_.rows;
    }
    // Keys are sent once a step.
    const double each = q_.wire_float_bytes;
    keys_bytes_ = kKeyBytes * asked_.rows;
    push_bytes_ = each * (asked_.floats + asked_.dense);
    pull_bytes_ = each * (asked_.floats + (ahead() ? 0 : asked_.dense));
    repair_bytes_ = ahead() ? each * (asked_.changed_floats + asked_.dense) : 0;
    answer_.worker_bytes_in = pull_bytes_ + repair_bytes_;
    answer_.worker_bytes_out = keys_bytes_ + push_bytes_;
    answer_.server_bytes_in = share * answer_.worker_bytes_out;
    answer_.server_bytes_out = share * answer_.worker_bytes_in;
    AddAllreduce();
    kept_bytes_ = kept_.SumBytes(workers());
    answer_.kept_rows_seconds = kept_.CoreSeconds(c_, workers(), asked_.floats) / q_.cores;
    if (kept_bytes_ > 0) answer_.kept_rows_seconds += 2 * SumRounds();  // Which rows, then values.
    answer_.worker_bytes_in += kept_bytes_;
    answer_.worker_bytes_out += kept_bytes_;
  }

  // Each rank sends and receives 2 (N - 1) / N of the gradients.
  void AddAllreduce() {
    if (!q_.allreduce || q_.workers == 1) return;
    const auto summed = double(q_.shape.dense_floats - q_.shape.floats_left_at_servers);
    const double bytes = 2 * (workers() - 1) / workers() * kFloatBytes * summed;
    const double wire = q_.one_machine ? workers() * kNano * c_.wire_byte_ns * bytes
                                       : bytes / q_.network_bytes_per_second;
    allreduce_bytes_ = bytes;
    allreduce_ = wire + SumRounds();
    answer_.worker_bytes_in += bytes;
    answer_.worker_bytes_out += bytes;
  }

  // Adds what threads on shared cores cost each other.
  double Beside(double core_seconds) const { return (1 + c_.sharing_beside) * core_seconds; }

  // All members share the cores. Work beside a worker's chain takes its share of their time, and
  // the cores cannot be busier than all of it.
  double StepOnOneMachine() {
    const double busy = std::min<double>(c_.exchange_busy_cores, q_.cores);
    const double chain = answer_.exchange_seconds;
    const double beside = Beside(answer_.reader_seconds +
                                 (ahead() ? server_pull_ * servers() * q_.cores / workers() : 0));
    const double all_cores = answer_.compute_seconds + answer_.kept_rows_seconds;
    answer_.core_seconds = workers() * (all_cores * q_.cores + chain * busy + beside);
    const double alone = chain + all_cores + beside / q_.cores;
    // In lockstep each part of a step lasts as long as it does on the slowest worker.
    const double used = q_.sync && q_.workers > 1 ? c_.sharing_lockstep : 1;
    return std::max(alone, answer_.core_seconds / (q_.cores * used)) + allreduce_;
  }

  // The chain was measured over a socket on one machine; the network replaces the socket if it is
  // slower.
  double OverNetwork(double chain, double bytes, double server, double server_bytes) const {
    const double link = bytes / q_.network_bytes_per_second;
    const double socket = kNano * c_.wire_byte_ns * bytes;
    const double alone = chain + std::max(0.0, link - socket) + kMicro * q_.network_round_trip_us;
    return std::max({alone, server, server_bytes / q_.network_bytes_per_second});
  }

  // Members share cores and a link: a worker's pushes are sent while those of others arrive.
  double StepOfMachines() {
    const double here = workers_here(), rate = q_.network_bytes_per_second;
    const double busy = std::max(1.0, here * c_.exchange_busy_cores / q_.cores);
    const auto link = [&](double bytes) { return here * bytes / rate; };
    // The cores work for the socket while the link is busy.
    const auto phase = [&](double core_seconds, double bytes) {
      const double waits = std::max(0.0, link(bytes) - kNano * c_.wire_byte_ns * bytes);
      return core_seconds + (bytes > 0 ? waits + kMicro * q_.network_round_trip_us : 0);
    };
    const double pull = busy * answer_.pull_seconds, pulled = away() * (keys_bytes_ + pull_bytes_);
    const double push = phase(busy * answer_.push_seconds, away() * push_bytes_);
    const double kept = phase(here * answer_.kept_rows_seconds, kept_bytes_);
    const double compute =
        here * (answer_.compute_seconds + Beside(answer_.reader_seconds) / q_.cores);
    answer_.machine_bytes =
        here * (away() * (push_bytes_ + repair_bytes_) + pulled + kept_bytes_ + allreduce_bytes_);
    machine_link_ = answer_.machine_bytes / rate;
    double step = push + kept + allreduce_;
    if (ahead()) {
      const double repair = phase(busy * answer_.repair_seconds, away() * repair_bytes_);
      answer_.exchange_seconds = push + repair;
      step += repair + std::max(compute + Beside(pull), link(pulled));
    } else {
      const double rows = phase(pull, pulled);
      answer_.exchange_seconds = push + rows;
      step += rows + compute;
    }
    return std::max(step, machine_link_);
  }

  double StepOverNetwork() {
    const double share = workers() / servers();
    const double push =
        OverNetwork(answer_.push_seconds, push_bytes_, server_push_, share * push_bytes_);
    const double pull =
        OverNetwork(answer_.pull_seconds, pull_bytes_, server_pull_, share * pull_bytes_);
    double compute = answer_.compute_seconds + Beside(answer_.reader_seconds) / q_.cores;
    if (kept_bytes_ > 0) compute += OverNetwork(answer_.kept_rows_seconds, kept_bytes_, 0, 0);
    double step = 0;
    if (ahead()) {
      const double repair =
          OverNetwork(answer_.repair_seconds, repair_bytes_, server_repair_, share * repair_bytes_);
      answer_.exchange_seconds = push + repair;
      step = push + repair + std::max(compute, pull);
    } else {
      answer_.exchange_seconds = push + pull;
      step = push + pull + compute;
    }
    worker_link_ =
        std::max(answer_.worker_bytes_in, answer_.worker_bytes_out) / q_.network_bytes_per_second;
    server_link_ =
        std::max(answer_.server_bytes_in, answer_.server_bytes_out) / q_.network_bytes_per_second;
    return std::max({step + allreduce_, worker_link_, server_link_});
  }

  void Step() {
    const double members = q_.one_machine ? workers() : workers_here();
    const double chain = answer_.exchange_seconds;  // Seconds of a worker's pushes and pulls.
    double step = q_.one_machine ? StepOnOneMachine()
                  : spread()     ? StepOfMachines()
                                 : StepOverNetwork();
    const double server = server_push_ + server_pull_ + server_repair_;
    step = std::max({step, answer_.reader_seconds, server});
    answer_.step_seconds = step;
    answer_.examples_per_second = q_.batch / step;
    answer_.parts = {{"worker: products and layers", members * answer_.compute_seconds},
                     {"worker: its side of pull and push", chain},
                     {"worker: reading and deduplicating", answer_.reader_seconds},
                     {"worker: rows kept there", members * answer_.kept_rows_seconds},
                     {"worker: allreduce of dense gradients", allreduce_},
                     {"worker: link", worker_link_},
                     {"server: rows and messages", server},
                     {"server: link", server_link_},
                     {"machine: link", machine_link_}};
    for (size_t p = 0; p < answer_.parts.size(); ++p) {
      if (answer_.parts[p].seconds > answer_.parts[answer_.bottleneck].seconds) {
        answer_.bottleneck = p;
      }
    }
  }

  const PlanQuestion& q_;
  const MachineConstants& c_;
  const double examples_;  // Of one worker in a step.
  Asked asked_;
  KeptRows kept_;
  PlanAnswer answer_;
  double part_share_ = 1;                     // Distinct keys per key of a micro-batch.
  double parts_rows_ = 0, parts_floats_ = 0;  // All micro-batches of a step together.
  double allreduce_ = 0, allreduce_bytes_ = 0, kept_bytes_ = 0;
  double worker_link_ = 0, server_link_ = 0, machine_link_ = 0;
  double server_pull_ = 0, server_push_ = 0, server_repair_ = 0;  // Seconds of one server per step.
  double keys_bytes_ = 0, pull_bytes_ = 0, push_bytes_ = 0, repair_bytes_ = 0;  // Per worker.
};

}  // namespace

PlanAnswer Plan(const PlanQuestion& question, const MachineConstants& constants) {
  return Planner(question, constants).Run();
}

}  // namespace hdps
